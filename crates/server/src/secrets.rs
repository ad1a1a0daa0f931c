//! Secrets: named here, shown only by an audited decryption.

use axum::{Json, http::StatusCode};
use breadcrumb::{NewSecret, SecretInfo};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    access::Caller, answers::Done, answers::Private, json_body::JsonBody, path_id::PathId, problem::Problem,
    query::Query,
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewValue {
    /// 1 to 65,536 bytes.
    value: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decryption {
    /// Why the value is needed, for the audit log; 1 to 1000 characters.
    reason: String,
}

#[derive(Serialize, ToSchema)]
pub struct SecretValue {
    value: String,
}

/// Keep a secret
#[utoipa::path(post, path = "/secrets", tag = "secrets", operation_id = "create_secret",
    request_body = NewSecret, responses((status = 201, body = SecretInfo)))]
pub async fn create(
    caller: Caller,
    JsonBody(secret): JsonBody<NewSecret>,
) -> Result<(StatusCode, Json<SecretInfo>), Problem> {
    secret.check()?;
    Ok((StatusCode::CREATED, Json(caller.store.create_secret(secret).await?)))
}

/// List secrets by name, without their values
#[utoipa::path(get, path = "/secrets", tag = "secrets", operation_id = "list_secrets",
    responses((status = 200, body = Vec<SecretInfo>)))]
pub async fn list(caller: Caller, query: Query) -> Result<Json<Vec<SecretInfo>>, Problem> {
    query.finish(&[])?;
    Ok(Json(caller.store.secrets().await?))
}

/// Give a secret a new value
#[utoipa::path(put, path = "/secrets/{id}", tag = "secrets", operation_id = "rotate_secret",
    params(("id" = Uuid, Path)), request_body = NewValue, responses((status = 200, body = SecretInfo)))]
pub async fn rotate(
    caller: Caller,
    PathId(id): PathId,
    JsonBody(new): JsonBody<NewValue>,
) -> Result<Json<SecretInfo>, Problem> {
    NewSecret::check_value(&new.value)?;
    Ok(Json(caller.store.rotate_secret(id, new.value).await?))
}

/// Delete a secret
#[utoipa::path(delete, path = "/secrets/{id}", tag = "secrets", operation_id = "delete_secret",
    params(("id" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(caller: Caller, PathId(id): PathId) -> Result<Json<Done>, Problem> {
    caller.store.delete_secret(id).await?;
    Ok(Done::JSON)
}

/// Decrypt a secret
///
/// Who asked, when and why is written to the audit log.
#[utoipa::path(post, path = "/secrets/{id}/decrypt", tag = "secrets", operation_id = "decrypt_secret",
    params(("id" = Uuid, Path)), request_body = Decryption, responses((status = 200, body = SecretValue)))]
pub async fn decrypt(
    caller: Caller,
    PathId(id): PathId,
    JsonBody(decryption): JsonBody<Decryption>,
) -> Result<Private<SecretValue>, Problem> {
    let reason = decryption.reason.trim();
    if reason.is_empty() || reason.chars().count() > 1000 || reason.contains('\0') {
        return Err(Problem::invalid("reason", "must have 1 to 1000 characters, none of them NUL"));
    }
    Ok(Private(SecretValue { value: caller.store.decrypt_secret(id, reason).await? }))
}
