//! Tenants. The operator (a token with that right, or every caller in open mode) manages all of
//! them; a curator sees and renames its own.

use axum::{Json, extract::State};
use rcrt_breadcrumb::{
    NewAgent, NewAgentKey, Profile, PublishRule, Role, StoreError, TenantInfo, TenantQuotas, TenantUsage,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::AuthMode;
use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::path::PathId;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::routes::replies::{Done, NoStore, NoStoreReply, Reply};
use crate::routes::tokens::{OPEN_TENANT, RCRT_OWNER};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantName {
    /// Unique; 1 to 200 characters.
    name: String,
    /// How much it can store; set by the operator. Unchanged when absent.
    quotas: Option<TenantQuotas>,
    /// What publishes the tools that agents make; set by a curator of the tenant, or the operator.
    /// Unchanged when absent.
    publish: Option<PublishRule>,
    /// The cell in which a new tenant begins, on a server with several; named by the operator. When
    /// absent, the one of `rcrt cell default`.
    cell: Option<String>,
}

/// A tenant, with its usage and its quotas.
#[derive(Serialize, ToSchema)]
pub struct TenantDetails {
    #[serde(flatten)]
    tenant: TenantInfo,
    usage: TenantUsage,
}

/// A tenant that was created or renamed.
#[derive(Serialize, ToSchema)]
pub struct TenantDone {
    ok: bool,
    /// Whether the tenant is new.
    created: bool,
    /// The first agent of a new tenant, which has every role, with its key, shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_agent: Option<NewAgentKey>,
}

/// List tenants
///
/// All of them for the operator, else the caller's own.
#[utoipa::path(get, path = "/tenants", tag = "tenants", operation_id = "list_tenants",
    responses((status = 200, body = Vec<TenantInfo>)))]
pub async fn list(State(state): State<ServerState>, caller: Caller, query: Query) -> Reply<Vec<TenantInfo>> {
    query.finish()?;
    let tenants = state.tenancy.tenants().await?;
    let own = caller.identity.owner_id;
    Ok(Json(tenants.into_iter().filter(|tenant| caller.is_operator || tenant.id == own).collect()))
}

/// Read a tenant
#[utoipa::path(get, path = "/tenants/{id}", tag = "tenants", operation_id = "get_tenant",
    params(("id" = Uuid, Path)), responses((status = 200, body = TenantDetails)))]
pub async fn get(State(state): State<ServerState>, caller: Caller, PathId(id): PathId) -> Reply<TenantDetails> {
    let id = resolve_id(&state, id).await?;
    visible(&caller, id)?;
    let tenant = state.tenancy.tenant(id).await?.ok_or(StoreError::NotFound { what: "tenant", id })?;
    let mut usage = state.tenancy.usage(id).await?;
    // The store does not know the default of this server.
    usage.in_force.max_requests = state.concurrency_limit.in_force(usage.own.max_requests);
    Ok(Json(TenantDetails { tenant, usage }))
}

/// Create a tenant
///
/// With an id of the caller's choice. An existing tenant with that id is renamed. Allowed for the
/// operator, and for a curator to rename its own tenant. A new tenant has one agent, whose key is
/// in the response. A runner works for one tenant: calls of the new one wait until a runner is
/// started for it (`rcrt runner` as an agent of that tenant).
#[utoipa::path(post, path = "/tenants/{id}", tag = "tenants", operation_id = "ensure_tenant",
    params(("id" = Uuid, Path)), request_body = TenantName, responses((status = 200, body = TenantDone)))]
pub async fn ensure(
    state: State<ServerState>,
    caller: Caller,
    id: PathId,
    name: JsonBody<TenantName>,
) -> NoStoreReply<TenantDone> {
    put(state, caller, id, name).await
}

/// Rename a tenant
///
/// Or create it, like the `POST`.
#[utoipa::path(put, path = "/tenants/{id}", tag = "tenants", operation_id = "update_tenant",
    params(("id" = Uuid, Path)), request_body = TenantName, responses((status = 200, body = TenantDone)))]
pub async fn update(
    state: State<ServerState>,
    caller: Caller,
    id: PathId,
    name: JsonBody<TenantName>,
) -> NoStoreReply<TenantDone> {
    put(state, caller, id, name).await
}

/// Delete a tenant
///
/// Its agents are refused from now on; its rows are deleted in the background. Only for the
/// operator. The tenant `default`, the operator's own, one with an active runner and the last one
/// cannot be deleted.
#[utoipa::path(delete, path = "/tenants/{id}", tag = "tenants", operation_id = "delete_tenant",
    params(("id" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(State(state): State<ServerState>, caller: Caller, PathId(id): PathId) -> Reply<Done> {
    let id = resolve_id(&state, id).await?;
    visible(&caller, id)?;
    if !caller.is_operator {
        return Err(only_the_operator("delete tenants"));
    }
    if id == caller.identity.owner_id {
        return Err(Problem::invalid("id", "must not be the tenant of your own token"));
    }
    if is_default(&state, id).await? {
        let message = "must not be the tenant `default`, which servers use by default";
        return Err(Problem::invalid("id", message));
    }
    state.tenancy.delete_tenant(id).await?;
    state.agent_cache.forget_tenant(id);
    Ok(Done::JSON)
}

async fn put(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(asked): PathId,
    JsonBody(TenantName { name, quotas, publish, cell }): JsonBody<TenantName>,
) -> NoStoreReply<TenantDone> {
    let id = resolve_id(&state, asked).await?;
    if !caller.is_operator && id != caller.identity.owner_id {
        return Err(only_the_operator("create tenants and rename other tenants"));
    }
    if quotas.is_some() && !caller.is_operator {
        return Err(only_the_operator("set quotas"));
    }
    if cell.is_some() && !caller.is_operator {
        return Err(only_the_operator("choose cells"));
    }
    // Programs find it by its name. A program that uses RCRT's id for it has no name to send.
    if is_default(&state, id).await? && name != OPEN_TENANT {
        if asked != id {
            return Ok(NoStore(TenantDone { ok: true, created: false, first_agent: None }));
        }
        return Err(Problem::invalid("name", "must stay `default`: servers find this tenant by its name"));
    }
    let (tenant, created) = state.tenancy.put_tenant(id, &name, cell.as_deref()).await?;
    if let Some(quotas) = quotas {
        state.tenancy.set_quotas(id, quotas).await?;
        state.agent_cache.forget_tenant(id);
    }
    if let Some(publish) = publish {
        state.tenancy.set_publish(id, publish).await?;
    }
    let first_agent = if created {
        state.agent_cache.forget_tenant(id);
        let first = NewAgent { name: "first".into(), roles: Role::ALL.to_vec(), profile: Profile::Main, tools: None };
        Some(state.tenancy.create_agent(tenant.id, None, first).await?)
    } else {
        None
    };
    Ok(NoStore(TenantDone { ok: true, created, first_agent }))
}

fn only_the_operator(can: &str) -> Problem {
    Problem::forbidden(format!(
        "only the operator can {can}: use a token of `rcrt token --operator`, which works on the server's machine"
    ))
}

/// For other callers than the operator, other tenants do not exist.
fn visible(caller: &Caller, id: Uuid) -> Result<(), StoreError> {
    if caller.is_operator || id == caller.identity.owner_id {
        Ok(())
    } else {
        Err(StoreError::NotFound { what: "tenant", id })
    }
}

/// In open mode RCRT's own tenant means the default tenant, as in token requests.
async fn resolve_id(state: &ServerState, id: Uuid) -> Result<Uuid, StoreError> {
    if state.auth == AuthMode::Open && id == RCRT_OWNER && state.tenancy.tenant(id).await?.is_none() {
        return Ok(state.tenancy.ensure_tenant(OPEN_TENANT).await?.id);
    }
    Ok(id)
}

async fn is_default(state: &ServerState, id: Uuid) -> Result<bool, StoreError> {
    Ok(state.tenancy.tenant(id).await?.is_some_and(|tenant| tenant.name == OPEN_TENANT))
}
