//! Secrets: listed by name; a value is shown only by an audited decryption.

use axum::{Json, extract::State, http::StatusCode};
use rcrt_breadcrumb::{NewSecret, SecretChanges, SecretInfo};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::path::PathId;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::routes::rcrt_compat::CompatBody;
use crate::routes::replies::{Done, NoStore, NoStoreReply, Reply};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decryption {
    /// Why the value is needed, for the audit log; 1 to 1000 characters.
    #[schema(min_length = 1, max_length = 1000, pattern = "\\S")]
    reason: String,
    /// The record of the tool that will use it; the secret must be granted to it. Only a curator
    /// can omit it.
    tool_id: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
pub struct SecretValue {
    value: String,
}

/// Store a secret
///
/// Tools use its value at the hosts that it is bound to, but cannot read it unless it is
/// `readable`. A tool can use it only after it is granted.
#[utoipa::path(post, path = "/secrets", tag = "secrets", operation_id = "create_secret",
    request_body = NewSecret, responses((status = 201, body = SecretInfo)))]
pub async fn create(
    State(state): State<ServerState>,
    caller: Caller,
    CompatBody(secret): CompatBody<NewSecret>,
) -> Result<(StatusCode, Json<SecretInfo>), Problem> {
    // RCRT's tools ask for secrets by their ids.
    let checked = if state.rcrt_compat { secret.check() } else { secret.check_for_tools() };
    checked?;
    Ok((StatusCode::CREATED, Json(caller.store.create_secret(secret).await?)))
}

/// List secrets by name, without their values
///
/// With the hosts of each, whether tools can read it, and which tools can use it. All of them, or
/// those of a scope (`scope_type`, `scope_id`).
#[utoipa::path(get, path = "/secrets", tag = "secrets", operation_id = "list_secrets",
    params(("scope_type" = Option<String>, Query), ("scope_id" = Option<Uuid>, Query)),
    responses((status = 200, body = Vec<SecretInfo>)))]
pub async fn list(caller: Caller, mut query: Query) -> Reply<Vec<SecretInfo>> {
    let kind = query.take_text("scope_type");
    let id = query.take_text("scope_id").and_then(|text| {
        let id = text.parse::<Uuid>();
        if id.is_err() {
            query.wrong("scope_id", "must be a UUID");
        }
        id.ok()
    });
    query.finish()?;
    let mut secrets = caller.store.secrets().await?;
    secrets.retain(|secret| kind.is_none() || secret.scope_type == kind);
    secrets.retain(|secret| id.is_none() || secret.scope_id == id);
    Ok(Json(secrets))
}

/// Change a secret
///
/// A new value, other hosts, or whether tools can read it. Absent fields and the grants stay
/// unchanged. A runner can renew the value for a tool that the secret is granted to.
#[utoipa::path(put, path = "/secrets/{id}", tag = "secrets", operation_id = "update_secret",
    params(("id" = Uuid, Path)), request_body = SecretChanges, responses((status = 200, body = SecretInfo)))]
pub async fn update(
    caller: Caller,
    PathId(id): PathId,
    CompatBody(changes): CompatBody<SecretChanges>,
) -> Reply<SecretInfo> {
    changes.check()?;
    Ok(Json(caller.store.update_secret(id, changes).await?))
}

/// Delete a secret
#[utoipa::path(delete, path = "/secrets/{id}", tag = "secrets", operation_id = "delete_secret",
    params(("id" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(caller: Caller, PathId(id): PathId) -> Reply<Done> {
    caller.store.delete_secret(id).await?;
    Ok(Done::JSON)
}

/// Decrypt a secret
///
/// The audit log records the agent, the time, the reason and the tool.
#[utoipa::path(post, path = "/secrets/{id}/decrypt", tag = "secrets", operation_id = "decrypt_secret",
    params(("id" = Uuid, Path)), request_body = Decryption, responses((status = 200, body = SecretValue)))]
pub async fn decrypt(
    caller: Caller,
    PathId(id): PathId,
    JsonBody(decryption): JsonBody<Decryption>,
) -> NoStoreReply<SecretValue> {
    let reason = decryption.reason.trim();
    if reason.is_empty() || reason.chars().count() > 1000 || reason.contains('\0') {
        return Err(Problem::invalid("reason", "must have 1 to 1000 characters, none of them NUL"));
    }
    Ok(NoStore(SecretValue { value: caller.store.decrypt_secret(id, reason, decryption.tool_id).await? }))
}
