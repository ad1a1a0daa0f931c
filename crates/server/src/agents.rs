//! Agents of the caller's tenant, and their keys.

use axum::{Json, extract::State, http::StatusCode};
use breadcrumb::{AgentInfo, NewAgent, NewAgentKey, Profile, Violations};

use crate::{
    ServerState, access::Caller, answers::Done, answers::Private, json_body::JsonBody, path_id::PathId,
    problem::Problem, query::Query,
};

/// Make an agent
///
/// The key is shown this once; the store keeps only a hash.
#[utoipa::path(post, path = "/agents", tag = "agents", operation_id = "create_agent",
    request_body = NewAgent, responses((status = 201, body = NewAgentKey)))]
pub async fn create(
    State(state): State<ServerState>,
    caller: Caller,
    JsonBody(agent): JsonBody<NewAgent>,
) -> Result<(StatusCode, Private<NewAgentKey>), Problem> {
    let mut found = Violations::default();
    if agent.name.trim().is_empty() || agent.name.chars().count() > 200 || agent.name.contains('\0') {
        found.add("name", "must have 1 to 200 characters, none of them NUL");
    }
    if agent.roles.is_empty() {
        found.add("roles", "must name at least one of curator, emitter, subscriber, runner");
    }
    found.into_result()?;
    let own = caller.identity.profile;
    if own != Profile::Main && agent.profile != own {
        // Else an agent would make itself another without its own limits.
        let why = format!("a token of the profile {own} makes agents of that profile alone; name it in profile");
        return Err(Problem::forbidden(why));
    }
    let made = state.tenancy.create_agent(caller.identity.owner_id, agent).await?;
    Ok((StatusCode::CREATED, Private(made)))
}

/// List agents
#[utoipa::path(get, path = "/agents", tag = "agents", operation_id = "list_agents",
    responses((status = 200, body = Vec<AgentInfo>)))]
pub async fn list(
    State(state): State<ServerState>,
    caller: Caller,
    query: Query,
) -> Result<Json<Vec<AgentInfo>>, Problem> {
    query.finish(&[])?;
    Ok(Json(state.tenancy.agents(caller.identity.owner_id).await?))
}

/// Read an agent
#[utoipa::path(get, path = "/agents/{id}", tag = "agents", operation_id = "get_agent",
    params(("id" = Uuid, Path)), responses((status = 200, body = AgentInfo)))]
pub async fn get(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<AgentInfo>, Problem> {
    let agent = state.tenancy.agent(caller.identity.owner_id, id).await?;
    Ok(Json(agent.ok_or(breadcrumb::StoreError::NotFound { what: "agent", id })?))
}

/// Delete an agent
///
/// Its key and its tokens end with it.
#[utoipa::path(delete, path = "/agents/{id}", tag = "agents", operation_id = "delete_agent",
    params(("id" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<Done>, Problem> {
    state.tenancy.delete_agent(caller.identity.owner_id, id).await?;
    state.known_agents.forget(caller.identity.owner_id, id);
    Ok(Done::JSON)
}
