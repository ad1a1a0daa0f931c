//! Tenants. The operator (a token with that right, or every caller in open mode) manages all of
//! them; a curator sees and renames its own.

use axum::{Json, extract::State};
use breadcrumb::{NewAgent, NewAgentKey, Profile, Role, StoreError, TenantInfo, TenantQuotas, TenantUsage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    AuthMode, ServerState,
    access::Caller,
    auth::{OPEN_TENANT, RCRT_OWNER},
    json_body::JsonBody,
    path_id::PathId,
    problem::Problem,
    query::Query,
    replies::{Done, NoStore},
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantName {
    /// Unique; 1 to 200 characters.
    name: String,
    /// How much it may keep; the operator sets it. Absent: stays as it is.
    quotas: Option<TenantQuotas>,
}

/// A tenant, with what it keeps and may keep.
#[derive(Serialize, ToSchema)]
pub struct TenantDetails {
    #[serde(flatten)]
    tenant: TenantInfo,
    usage: TenantUsage,
}

/// A tenant that was made or renamed.
#[derive(Serialize, ToSchema)]
pub struct TenantDone {
    ok: bool,
    /// Whether it was not there before.
    created: bool,
    /// Of a new tenant: its first agent, which has every role, with its key, shown this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_agent: Option<NewAgentKey>,
}

/// List tenants
///
/// All of them for the operator, else the caller's own.
#[utoipa::path(get, path = "/tenants", tag = "tenants", operation_id = "list_tenants",
    responses((status = 200, body = Vec<TenantInfo>)))]
pub async fn list(
    State(state): State<ServerState>,
    caller: Caller,
    query: Query,
) -> Result<Json<Vec<TenantInfo>>, Problem> {
    query.finish(&[])?;
    let tenants = state.tenancy.tenants().await?;
    let own = caller.identity.owner_id;
    Ok(Json(tenants.into_iter().filter(|tenant| caller.is_operator || tenant.id == own).collect()))
}

/// Read a tenant
#[utoipa::path(get, path = "/tenants/{id}", tag = "tenants", operation_id = "get_tenant",
    params(("id" = Uuid, Path)), responses((status = 200, body = TenantDetails)))]
pub async fn get(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<TenantDetails>, Problem> {
    let id = meant(&state, id).await?;
    visible(&caller, id)?;
    let tenant = state.tenancy.tenant(id).await?.ok_or(StoreError::NotFound { what: "tenant", id })?;
    Ok(Json(TenantDetails { tenant, usage: state.tenancy.usage(id).await? }))
}

/// Make a tenant
///
/// With an id of the caller's choice; a tenant of that id that is there already is renamed. The operator may, and a
/// curator its own. A new tenant has one agent, whose key is in the answer. A runner works for one tenant: calls of the
/// new one wait until a runner is started for it (`rcrt runner` as an agent of that tenant).
#[utoipa::path(post, path = "/tenants/{id}", tag = "tenants", operation_id = "ensure_tenant",
    params(("id" = Uuid, Path)), request_body = TenantName, responses((status = 200, body = TenantDone)))]
pub async fn ensure(
    state: State<ServerState>,
    caller: Caller,
    id: PathId,
    name: JsonBody<TenantName>,
) -> Result<NoStore<TenantDone>, Problem> {
    put(state, caller, id, name).await
}

/// Rename a tenant
///
/// Or make it, like the `POST`.
#[utoipa::path(put, path = "/tenants/{id}", tag = "tenants", operation_id = "update_tenant",
    params(("id" = Uuid, Path)), request_body = TenantName, responses((status = 200, body = TenantDone)))]
pub async fn update(
    state: State<ServerState>,
    caller: Caller,
    id: PathId,
    name: JsonBody<TenantName>,
) -> Result<NoStore<TenantDone>, Problem> {
    put(state, caller, id, name).await
}

/// Delete a tenant
///
/// Its agents are refused from now on; its rows go in the background. For the operator, and not for the tenant `default`,
/// the operator's own, one in which a runner is at work, or the last.
#[utoipa::path(delete, path = "/tenants/{id}", tag = "tenants", operation_id = "delete_tenant",
    params(("id" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Json<Done>, Problem> {
    let id = meant(&state, id).await?;
    visible(&caller, id)?;
    if !caller.is_operator {
        return Err(Problem::forbidden("only the operator deletes tenants: use a token of `rcrt token --operator`"));
    }
    if id == caller.identity.owner_id {
        return Err(Problem::invalid("id", "is the tenant of your own token, which would end with it"));
    }
    if is_default(&state, id).await? {
        let message = "is the tenant `default`, which every server serves unless it is told another";
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
    JsonBody(TenantName { name, quotas }): JsonBody<TenantName>,
) -> Result<NoStore<TenantDone>, Problem> {
    let id = meant(&state, asked).await?;
    if !caller.is_operator && id != caller.identity.owner_id {
        return Err(Problem::forbidden(
            "only the operator makes tenants and renames others than its own: use a token of `rcrt token --operator`",
        ));
    }
    if quotas.is_some() && !caller.is_operator {
        return Err(Problem::forbidden("only the operator sets quotas: use a token of `rcrt token --operator`"));
    }
    // Programs find it by its name; one that means it by RCRT's id has no name to give.
    if is_default(&state, id).await? && name != OPEN_TENANT {
        if asked != id {
            return Ok(NoStore(TenantDone { ok: true, created: false, first_agent: None }));
        }
        return Err(Problem::invalid("name", "must stay `default`: servers find this tenant by its name"));
    }
    let (tenant, created) = state.tenancy.put_tenant(id, &name).await?;
    if let Some(quotas) = quotas {
        state.tenancy.set_quotas(id, quotas).await?;
    }
    let first_agent = if created {
        state.agent_cache.forget_tenant(id);
        let first = NewAgent { name: "first".into(), roles: Role::ALL.to_vec(), profile: Profile::Main };
        Some(state.tenancy.create_agent(tenant.id, first).await?)
    } else {
        None
    };
    Ok(NoStore(TenantDone { ok: true, created, first_agent }))
}

/// Others than the own are not there for who is no operator.
fn visible(caller: &Caller, id: Uuid) -> Result<(), StoreError> {
    if caller.is_operator || id == caller.identity.owner_id {
        Ok(())
    } else {
        Err(StoreError::NotFound { what: "tenant", id })
    }
}

/// In open mode RCRT's own tenant is the default one, as it is for tokens.
async fn meant(state: &ServerState, id: Uuid) -> Result<Uuid, StoreError> {
    if state.auth == AuthMode::Open && id == RCRT_OWNER && state.tenancy.tenant(id).await?.is_none() {
        return Ok(state.tenancy.ensure_tenant(OPEN_TENANT).await?.id);
    }
    Ok(id)
}

async fn is_default(state: &ServerState, id: Uuid) -> Result<bool, StoreError> {
    Ok(state.tenancy.tenant(id).await?.is_some_and(|tenant| tenant.name == OPEN_TENANT))
}
