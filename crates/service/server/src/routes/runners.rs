//! The reports of runners, the list of them, and what the writer of a tool learns of them.

use std::time::Instant;

use axum::Json;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use rcrt_breadcrumb::{RUNNERS_WAIT, ReportReply, RunnerDrain, RunnerInfo, RunnerReport};
use uuid::Uuid;

use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::path::PathId;
use crate::http::query::Query;
use crate::routes::replies::Reply;

/// How many live runners did not use a changed tool when its write was acknowledged.
pub const RUNNERS_BEHIND: HeaderName = HeaderName::from_static("runners-behind");

/// Report a runner
///
/// Says that a runner is live and up to which event it uses the changes of tools. The write of a
/// tool waits up to a second for every live runner.
#[utoipa::path(post, path = "/runners", tag = "calls", operation_id = "report_runner",
    request_body = RunnerReport, responses((status = 200, body = ReportReply)))]
pub async fn report(caller: Caller, JsonBody(report): JsonBody<RunnerReport>) -> Reply<ReportReply> {
    Ok(Json(caller.store.report_runner(&report).await?))
}

/// List runners
///
/// The live runners of the tenant, the oldest first, with their slots and calls. A runner reports
/// its slots about every second, and at once that it is draining. A runner that stops is removed at
/// once; one that is lost, when its lease ends.
#[utoipa::path(get, path = "/runners", tag = "calls", operation_id = "list_runners",
    responses((status = 200, body = Vec<RunnerInfo>)))]
pub async fn list(caller: Caller, query: Query) -> Reply<Vec<RunnerInfo>> {
    query.finish()?;
    Ok(Json(caller.store.runners().await?))
}

/// Drain a runner
///
/// Asks a live runner to take no more calls and to finish those that it has, or to take calls
/// again. It follows within about a second; `draining` in the list says that it has. It keeps
/// running: stop its process when its calls have ended. The wish ends with the runner's lease.
#[utoipa::path(post, path = "/runners/{id}/drain", tag = "calls", operation_id = "drain_runner",
    params(("id" = Uuid, Path)), request_body = RunnerDrain, responses((status = 200, body = RunnerInfo)))]
pub async fn drain(caller: Caller, PathId(id): PathId, JsonBody(drain): JsonBody<RunnerDrain>) -> Reply<RunnerInfo> {
    Ok(Json(caller.store.drain_runner(id, drain).await?))
}

/// Adds the header if runners are behind. Only a write that took as long as it waits for runners
/// can have left one behind, so other writes cost no query.
pub async fn mark(mut answer: Response, caller: &Caller, record: Uuid, begun: Instant) -> Response {
    if begun.elapsed() >= RUNNERS_WAIT
        && let Ok(behind) = caller.store.runners_behind(record).await
        && !behind.is_empty()
    {
        answer.headers_mut().insert(RUNNERS_BEHIND, HeaderValue::from(behind.len()));
    }
    answer
}
