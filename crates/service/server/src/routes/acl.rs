//! ACL grants: which agents and tenants a record is open to, beyond its tenant and its visibility.

use axum::Json;
use rcrt_breadcrumb::{AclChange, AclEntry};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::query::Query;
use crate::routes::replies::Reply;

/// The grant.
#[derive(Serialize, ToSchema)]
pub struct Granted {
    id: Uuid,
}

/// The number of grants that were changed: zero or one.
#[derive(Serialize, ToSchema)]
pub struct Revoked {
    rows: u64,
}

/// List grants
///
/// Newest first. Curators get all grants of the tenant, other agents those on records that they
/// created.
#[utoipa::path(get, path = "/acl", tag = "acl", operation_id = "list_grants",
    params(("breadcrumb_id" = Option<Uuid>, Query, description = "Only grants on this record")),
    responses((status = 200, body = Vec<AclEntry>)))]
pub async fn list(caller: Caller, mut query: Query) -> Reply<Vec<AclEntry>> {
    let record = query.take_optional("breadcrumb_id", "a record's id, a UUID");
    query.finish()?;
    Ok(Json(caller.store.grants(record).await?))
}

/// Grant access to a record
///
/// The grantee is an agent of this or another tenant, or all agents of a tenant. Curators can grant
/// access, and so can the agent that created the record. Only curators can grant access to a
/// `tool.response.v1`. `read_full` includes `read_context`. Another grant to the same grantee adds
/// its actions.
#[utoipa::path(post, path = "/acl/grant", tag = "acl", operation_id = "grant_access",
    request_body = AclChange, responses((status = 200, body = Granted)))]
pub async fn grant(caller: Caller, JsonBody(change): JsonBody<AclChange>) -> Reply<Granted> {
    Ok(Json(Granted { id: caller.store.grant(&change).await? }))
}

/// Revoke access to a record
///
/// Takes these actions from the grantee at once. Open event streams follow within two seconds.
#[utoipa::path(post, path = "/acl/revoke", tag = "acl", operation_id = "revoke_access",
    request_body = AclChange, responses((status = 200, body = Revoked)))]
pub async fn revoke(caller: Caller, JsonBody(change): JsonBody<AclChange>) -> Reply<Revoked> {
    Ok(Json(Revoked { rows: caller.store.revoke(&change).await? }))
}
