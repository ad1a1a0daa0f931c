//! Secret grants: which tools can use which secret.

use axum::Json;
use rcrt_breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, ContextMatch, ContextPath, MatchOp, Records, SecretInfo, StoreError,
    schema_names,
};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::path::{PathId, PathIds};
use crate::http::problem::Problem;
use crate::routes::replies::Reply;

/// The tool, by its record or by its name.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    /// The tool's record.
    tool_id: Option<Uuid>,
    /// The tool's name, if exactly one record has it.
    tool: Option<String>,
}

/// Let a tool use a secret
///
/// The grant belongs to the tool's record and is deleted with it; another record with the same name
/// gets no access. Repeating a grant changes nothing. From then on only a curator can change or
/// delete the record.
#[utoipa::path(post, path = "/secrets/{id}/grants", tag = "secrets", operation_id = "grant_secret",
    params(("id" = Uuid, Path)), request_body = NewGrant, responses((status = 200, body = SecretInfo)))]
pub async fn grant(caller: Caller, PathId(id): PathId, JsonBody(grant): JsonBody<NewGrant>) -> Reply<SecretInfo> {
    let tool_id = match (grant.tool_id, grant.tool) {
        (Some(tool_id), None) => tool_id,
        (None, Some(name)) => named(&*caller.store, &name).await?,
        _ => return Err(Problem::invalid("tool_id", "must name the tool's record, or tool must have the tool's name")),
    };
    Ok(Json(caller.store.grant_secret(id, tool_id).await?))
}

/// Revoke a grant
///
/// For every call that starts from now on. A running call keeps its values.
#[utoipa::path(delete, path = "/secrets/{id}/grants/{tool_id}", tag = "secrets", operation_id = "revoke_secret",
    params(("id" = Uuid, Path), ("tool_id" = Uuid, Path)), responses((status = 200, body = SecretInfo)))]
pub async fn revoke(caller: Caller, PathIds(id, tool_id): PathIds) -> Reply<SecretInfo> {
    Ok(Json(caller.store.revoke_secret(id, tool_id).await?))
}

/// The only record with this name. If there are several, the caller must choose: one can be from an
/// attacker.
pub async fn named(store: &(impl Records + ?Sized), name: &str) -> Result<Uuid, Problem> {
    let mut found: Vec<BreadcrumbListItem> = Vec::new();
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        let path = ContextPath::try_from("$.name".to_owned()).map_err(StoreError::Internal)?;
        let mut query = BreadcrumbQuery::of_schema(schema);
        query.selector.context_match = vec![ContextMatch { path, op: MatchOp::Eq, value: name.into() }];
        query.include_context = false;
        found.extend(store.list(&query).await?);
    }
    match found.as_slice() {
        [one] => Ok(one.id),
        [] => Err(Problem::invalid("tool", format!("there is no tool named {name:?}"))),
        several => {
            let ids: Vec<String> = several.iter().take(10).map(|item| item.id.to_string()).collect();
            let message = format!("{name:?} is the name of several records; choose one in tool_id: {}", ids.join(", "));
            Err(Problem::invalid("tool", message))
        }
    }
}
