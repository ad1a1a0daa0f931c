//! The queue of calls. Runners claim, start, heartbeat, complete and release.

use axum::Json;
use axum::http::HeaderMap;
use rcrt_breadcrumb::{
    Call, Claim, ClaimRequest, Lease, LeaseState, NewBreadcrumb, RUNNER_PROTOCOL_HEADER, Release, Violations,
    check_runner_protocol,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::access::Caller;
use crate::http::headers::one_header;
use crate::http::json_body::JsonBody;
use crate::http::path::PathId;
use crate::http::problem::Problem;
use crate::routes::replies::{Done, Reply};

/// The most leases in one heartbeat.
const MAX_LEASES: usize = 1000;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Start {
    lease: Lease,
    /// The tool's `limits.max_attempts`, 1 to 10.
    #[schema(minimum = 1, maximum = 10)]
    max_attempts: u32,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// At most 1,000.
    #[schema(max_items = 1000)]
    leases: Vec<Lease>,
    /// The new duration of each lease in milliseconds, counted from now, 1,000 to 600,000.
    #[schema(minimum = 1000, maximum = 600_000)]
    lease_ms: u64,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    lease: Lease,
    /// The `tool.response.v1` record.
    response: NewBreadcrumb,
}

/// The id of the response's record.
#[derive(Serialize, ToSchema)]
pub struct Completed {
    id: Uuid,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    lease: Lease,
    release: Release,
}

/// Claim queued calls
///
/// The oldest first. Returns at once, with an empty list if no call is queued.
#[utoipa::path(post, path = "/calls/claim", tag = "calls", operation_id = "claim_calls",
    params(("Rcrt-Runner-Protocol" = Option<u32>, Header, minimum = 1, maximum = 1,
        description = "What the runner speaks. A number that this server does not speak is refused")),
    request_body = ClaimRequest, responses((status = 200, body = Vec<Claim>)))]
pub async fn claim(caller: Caller, headers: HeaderMap, JsonBody(wanted): JsonBody<ClaimRequest>) -> Reply<Vec<Claim>> {
    check_runner_protocol(one_header(&headers, RUNNER_PROTOCOL_HEADER)?)?;
    wanted.check()?;
    Ok(Json(caller.store.claim(&wanted).await?))
}

/// Mark a claimed call as running
///
/// From then on it is repeated only if its `max_attempts` allows it.
#[utoipa::path(post, path = "/calls/start", tag = "calls", operation_id = "start_call",
    request_body = Start, responses((status = 200, body = Done)))]
pub async fn start(caller: Caller, JsonBody(start): JsonBody<Start>) -> Reply<Done> {
    if !(1..=10).contains(&start.max_attempts) {
        return Err(Problem::invalid("max_attempts", "must be from 1 to 10"));
    }
    caller.store.start(start.lease, start.max_attempts).await?;
    Ok(Done::JSON)
}

/// Extend leases
///
/// Returns the state of each lease, in the order of the input.
#[utoipa::path(post, path = "/calls/heartbeat", tag = "calls", operation_id = "heartbeat",
    request_body = Heartbeat, responses((status = 200, body = Vec<LeaseState>)))]
pub async fn heartbeat(caller: Caller, JsonBody(beat): JsonBody<Heartbeat>) -> Reply<Vec<LeaseState>> {
    let mut found = Violations::default();
    if beat.leases.len() > MAX_LEASES {
        found.add("leases", format!("has {} entries; at most {MAX_LEASES} are allowed", beat.leases.len()));
    }
    if !(1_000..=600_000).contains(&beat.lease_ms) {
        found.add("lease_ms", "must be from 1000 to 600000");
    }
    found.into_result()?;
    Ok(Json(caller.store.heartbeat(&beat.leases, beat.lease_ms).await?))
}

/// Complete a call
///
/// Writes the response and finishes the call, in one transaction.
#[utoipa::path(post, path = "/calls/complete", tag = "calls", operation_id = "complete_call",
    request_body = Complete, responses((status = 200, body = Completed)))]
pub async fn complete(caller: Caller, JsonBody(complete): JsonBody<Complete>) -> Reply<Completed> {
    let id = caller.store.complete(complete.lease, complete.response).await?;
    Ok(Json(Completed { id }))
}

/// Return a call to the queue
#[utoipa::path(post, path = "/calls/release", tag = "calls", operation_id = "release_call",
    request_body = ReleaseRequest, responses((status = 200, body = Done)))]
pub async fn release(caller: Caller, JsonBody(back): JsonBody<ReleaseRequest>) -> Reply<Done> {
    caller.store.release(back.lease, back.release).await?;
    Ok(Done::JSON)
}

/// Cancel a request
///
/// A queued one gets the response `Cancelled` at once. The runner of a running one is notified.
/// Cancelling a finished one changes nothing.
#[utoipa::path(post, path = "/calls/{request_id}/cancel", tag = "calls", operation_id = "cancel_call",
    params(("request_id" = Uuid, Path, description = "The id of the request's record")),
    responses((status = 200, body = Call)))]
pub async fn cancel(caller: Caller, PathId(request): PathId) -> Reply<Call> {
    Ok(Json(caller.store.cancel(request).await?))
}
