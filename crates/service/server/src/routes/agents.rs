//! Agents of the caller's tenant, and their keys.

use axum::{Json, extract::State, http::StatusCode};
use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, Identity, NewAgent, NewAgentKey, Profile, Role, SelectorSubscription, StoreError,
    Violations,
};

use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::path::PathId;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::routes::replies::{Done, NoStore, NoStoreReply, Reply};
use crate::{AuthMode, ServerState};

/// Create an agent
///
/// The key is shown only once; the store has only a hash.
#[utoipa::path(post, path = "/agents", tag = "agents", operation_id = "create_agent",
    request_body = NewAgent, responses((status = 201, body = NewAgentKey)))]
pub async fn create(
    State(state): State<ServerState>,
    caller: Caller,
    JsonBody(agent): JsonBody<NewAgent>,
) -> Result<(StatusCode, NoStore<NewAgentKey>), Problem> {
    let mut found = Violations::default();
    if agent.name.trim().is_empty() || agent.name.chars().count() > 200 || agent.name.contains('\0') {
        found.add("name", "must have 1 to 200 characters, none of them NUL");
    }
    if agent.roles.is_empty() {
        found.add("roles", format!("must name at least one of {}", Role::NAMES));
    }
    found.into_result()?;
    let own = caller.identity.profile;
    if own != Profile::Main && agent.profile != own {
        // Otherwise an agent could create another one without its own limits.
        let why = format!("a token of the profile {own} can only create agents of that profile; name it in profile");
        return Err(Problem::forbidden(why));
    }
    let made = state.tenancy.create_agent(caller.identity.owner_id, Some(caller.identity.agent_id), agent).await?;
    Ok((StatusCode::CREATED, NoStore(made)))
}

/// The result of a registration.
#[derive(Serialize, ToSchema)]
pub struct Registered {
    ok: bool,
    /// Whether the agent is new.
    created: bool,
    /// The key of a new agent, shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_key: Option<String>,
}

/// Register an agent
///
/// Creates an agent with an id of the caller's choice (its key is shown only once), or changes the
/// roles, and if given the name, the profile and the allow list, of an existing one. A removed role
/// and a restricted profile apply to the agent's tokens at once. An added role and the profile
/// `main` are in tokens that are issued later. A curator cannot remove its own role or change its
/// own profile, so that a tenant keeps a curator.
#[utoipa::path(post, path = "/agents/{id}", tag = "agents", operation_id = "register_agent",
    params(("id" = Uuid, Path)), request_body = AgentRegistration, responses((status = 200, body = Registered)))]
pub async fn put(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(id): PathId,
    JsonBody(agent): JsonBody<AgentRegistration>,
) -> NoStoreReply<Registered> {
    let Identity { owner_id, agent_id: by, profile: own, .. } = caller.identity;
    if own != Profile::Main {
        let present = state.tenancy.agent(owner_id, id).await?;
        let its = present.map_or_else(|| agent.profile.unwrap_or_default(), |present| present.profile);
        if its != own || agent.profile.is_some_and(|profile| profile != own) {
            let why = format!("a token of the profile {own} can only create and change agents of that profile");
            return Err(Problem::forbidden(why));
        }
    }
    // In open mode agents register themselves with any roles.
    if state.auth == AuthMode::Keys && id == by && !agent.roles.contains(&Role::Curator) {
        let why = "a curator cannot remove its own role curator; use the token of another curator";
        return Err(Problem::forbidden(why));
    }
    if state.auth == AuthMode::Keys && id == by && agent.profile.is_some_and(|profile| profile != own) {
        let why = "a curator cannot change its own profile; use the token of another curator";
        return Err(Problem::forbidden(why));
    }
    let (_, agent_key) = state.tenancy.put_agent(owner_id, Some(by), id, agent).await?;
    state.agent_cache.forget(owner_id, id);
    Ok(NoStore(Registered { ok: true, created: agent_key.is_some(), agent_key }))
}

/// List agents
#[utoipa::path(get, path = "/agents", tag = "agents", operation_id = "list_agents",
    responses((status = 200, body = Vec<AgentInfo>)))]
pub async fn list(State(state): State<ServerState>, caller: Caller, query: Query) -> Reply<Vec<AgentInfo>> {
    query.finish()?;
    Ok(Json(state.tenancy.agents(caller.identity.owner_id).await?))
}

/// Read an agent
#[utoipa::path(get, path = "/agents/{id}", tag = "agents", operation_id = "get_agent",
    params(("id" = Uuid, Path)), responses((status = 200, body = AgentInfo)))]
pub async fn get(State(state): State<ServerState>, caller: Caller, PathId(id): PathId) -> Reply<AgentInfo> {
    let agent = state.tenancy.agent(caller.identity.owner_id, id).await?;
    Ok(Json(agent.ok_or(StoreError::NotFound { what: "agent", id })?))
}

/// List the selectors of an agent
///
/// Which events its streams have, for curators. An agent reads and changes its own at
/// `/subscriptions/selectors`.
#[utoipa::path(get, path = "/agents/{id}/selectors", tag = "agents", operation_id = "list_agent_selectors",
    params(("id" = Uuid, Path)), responses((status = 200, body = Vec<SelectorSubscription>)))]
pub async fn selectors(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(id): PathId,
    query: Query,
) -> Result<Json<Vec<SelectorSubscription>>, Problem> {
    query.finish()?;
    let is_known = state.auth == AuthMode::Open || state.tenancy.agent(caller.identity.owner_id, id).await?.is_some();
    if !is_known {
        return Err(StoreError::NotFound { what: "agent", id }.into());
    }
    Ok(Json(caller.store.selectors_of(id).await?))
}

/// Give an agent a new key
///
/// The old key is invalid from now on. The agent's tokens stay valid until they expire or are
/// revoked. The new key is shown only once.
#[utoipa::path(post, path = "/agents/{id}/rotate-key", tag = "agents", operation_id = "rotate_agent_key",
    params(("id" = Uuid, Path)), responses((status = 200, body = NewAgentKey)))]
pub async fn rotate_key(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(id): PathId,
) -> NoStoreReply<NewAgentKey> {
    let Identity { owner_id, agent_id: by, profile: own, .. } = caller.identity;
    if own != Profile::Main {
        let present = state.tenancy.agent(owner_id, id).await?;
        if present.is_some_and(|present| present.profile != own) {
            let why = format!("a token of the profile {own} can only change agents of that profile");
            return Err(Problem::forbidden(why));
        }
    }
    Ok(NoStore(state.tenancy.rotate_agent_key(owner_id, Some(by), id).await?))
}

/// Delete an agent
///
/// Its key and its tokens become invalid. An agent cannot delete itself, so that a tenant keeps a
/// curator.
#[utoipa::path(delete, path = "/agents/{id}", tag = "agents", operation_id = "delete_agent",
    params(("id" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(State(state): State<ServerState>, caller: Caller, PathId(id): PathId) -> Reply<Done> {
    let Identity { owner_id, agent_id: by, .. } = caller.identity;
    if id == by {
        return Err(Problem::forbidden("an agent cannot delete itself; use the token of another curator"));
    }
    state.tenancy.delete_agent(owner_id, Some(by), id).await?;
    state.agent_cache.forget(owner_id, id);
    Ok(Done::JSON)
}
