//! Deliveries to webhooks that failed for good.

use axum::{Json, extract::State};
use rcrt_breadcrumb::DeadLetter;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::path::PathId;
use crate::http::query::Query;
use crate::routes::replies::{Done, Reply};

const PAGE: u32 = 100;
const MAX_PAGE: u32 = 1000;

/// The delivery is queued again.
#[derive(Debug, Serialize, ToSchema)]
pub struct Requeued {
    requeued: bool,
}

/// How many were deleted.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedCount {
    ok: bool,
    deleted: u64,
}

/// List dead letters
///
/// Failed deliveries of all agents of the tenant, newest first. A page can be shorter than `limit`
/// if payloads are large; the last page is empty.
#[utoipa::path(get, path = "/dlq", tag = "webhooks", operation_id = "list_dead_letters",
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "1 to 1000; 100 when absent"),
        ("offset" = Option<i64>, Query, minimum = 0, maximum = 4_294_967_295_u64),
    ),
    responses((status = 200, body = Vec<DeadLetter>)))]
pub async fn list(State(state): State<ServerState>, caller: Caller, mut query: Query) -> Reply<Vec<DeadLetter>> {
    let limit = query.take_as("limit", "a number from 1 to 1000", PAGE);
    let offset = query.take_as("offset", "a number from 0", 0);
    if !(1..=MAX_PAGE).contains(&limit) {
        query.wrong("limit", format!("must be from 1 to {MAX_PAGE}"));
    }
    query.finish()?;
    Ok(Json(state.tenancy.webhooks().dead_letters(caller.identity.owner_id, limit, offset).await?))
}

/// Try a dead letter again
///
/// The delivery is queued as if it were new, with the same `webhook-id`.
#[utoipa::path(post, path = "/dlq/{id}/retry", tag = "webhooks", operation_id = "retry_dead_letter",
    params(("id" = Uuid, Path)), responses((status = 200, body = Requeued)))]
pub async fn retry(State(state): State<ServerState>, caller: Caller, PathId(id): PathId) -> Reply<Requeued> {
    state.tenancy.webhooks().retry_dead_letter(caller.identity.owner_id, id).await?;
    Ok(Json(Requeued { requeued: true }))
}

/// Delete a dead letter
#[utoipa::path(delete, path = "/dlq/{id}", tag = "webhooks", operation_id = "delete_dead_letter",
    params(("id" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(State(state): State<ServerState>, caller: Caller, PathId(id): PathId) -> Reply<Done> {
    state.tenancy.webhooks().delete_dead_letter(caller.identity.owner_id, id).await?;
    Ok(Done::JSON)
}

/// Delete all dead letters
#[utoipa::path(delete, path = "/dlq", tag = "webhooks", operation_id = "delete_dead_letters",
    responses((status = 200, body = DeletedCount)))]
pub async fn delete_all(State(state): State<ServerState>, caller: Caller) -> Reply<DeletedCount> {
    let deleted = state.tenancy.webhooks().delete_dead_letters(caller.identity.owner_id).await?;
    Ok(Json(DeletedCount { ok: true, deleted }))
}
