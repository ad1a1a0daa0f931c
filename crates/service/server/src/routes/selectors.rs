//! The selectors of the caller's own event streams.

use axum::{Json, http::StatusCode};
use rcrt_breadcrumb::{Selector, SelectorSubscription};

use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::path::PathId;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::routes::replies::{Done, Reply};

/// Add a selector
///
/// From now on the agent's event streams, including open ones, have only events that match one of
/// its selectors. An agent without selectors gets every event that it can see.
#[utoipa::path(post, path = "/subscriptions/selectors", tag = "events", operation_id = "create_selector",
    request_body = Selector, responses((status = 201, body = SelectorSubscription)))]
pub async fn create(
    caller: Caller,
    JsonBody(selector): JsonBody<Selector>,
) -> Result<(StatusCode, Json<SelectorSubscription>), Problem> {
    Ok((StatusCode::CREATED, Json(caller.store.create_selector(selector).await?)))
}

/// List the agent's selectors
#[utoipa::path(get, path = "/subscriptions/selectors", tag = "events", operation_id = "list_selectors",
    responses((status = 200, body = Vec<SelectorSubscription>)))]
pub async fn list(caller: Caller, query: Query) -> Reply<Vec<SelectorSubscription>> {
    query.finish()?;
    Ok(Json(caller.store.selectors().await?))
}

/// Replace a selector
#[utoipa::path(put, path = "/subscriptions/selectors/{id}", tag = "events", operation_id = "update_selector",
    params(("id" = Uuid, Path)), request_body = Selector, responses((status = 200, body = SelectorSubscription)))]
pub async fn update(
    caller: Caller,
    PathId(id): PathId,
    JsonBody(selector): JsonBody<Selector>,
) -> Reply<SelectorSubscription> {
    Ok(Json(caller.store.update_selector(id, selector).await?))
}

/// Delete a selector
#[utoipa::path(delete, path = "/subscriptions/selectors/{id}", tag = "events", operation_id = "delete_selector",
    params(("id" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(caller: Caller, PathId(id): PathId) -> Reply<Done> {
    caller.store.delete_selector(id).await?;
    Ok(Done::JSON)
}
