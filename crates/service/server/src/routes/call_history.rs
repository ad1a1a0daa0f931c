//! Calls for people and dashboards: lists, details and statistics.

use axum::Json;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    CallDetails, CallPage, CallQuery, CallState, CallStats, CallStatsQuery, ErrorCode, ResponseStatus, ttl_seconds,
};
use serde_json::Value;

use crate::auth::access::Caller;
use crate::http::path::PathId;
use crate::http::query::Query;
use crate::routes::replies::Reply;

/// Calls of a page if the caller sets no limit.
const PAGE: u32 = 50;
/// The window of the statistics if the caller sets none: one hour.
const WINDOW: u64 = 3600;
const TIME: &str = "a time such as 2026-01-31T12:00:00Z";

/// List calls
///
/// The newest first. An agent sees the calls whose requests it can read; a curator sees all of the
/// tenant. One page examines at most 20,000 calls (2,000 with `text`), so a page of a rare tool can
/// be short or empty and still have a `next`.
#[utoipa::path(get, path = "/calls", tag = "calls", operation_id = "list_calls",
    params(
        ("state" = Option<CallState>, Query, description = "`queued`, `claimed`, `running` or `finished`"),
        ("tool" = Option<String>, Query, description = "The tool's name"),
        ("agent_id" = Option<Uuid>, Query, description = "The agent that asked for the call"),
        ("session" = Option<String>, Query, description = "The request's `session`"),
        ("status" = Option<ResponseStatus>, Query, description = "`success` or `error`: finished calls"),
        ("error_code" = Option<ErrorCode>, Query, description = "Why the call failed, such as `Timeout`"),
        ("parent" = Option<Uuid>, Query, description = "The request whose call asked for the calls"),
        ("request_id" = Option<String>, Query, description = "The request's `requestId`, or the id of its record"),
        ("tag" = Option<String>, Query, description = "A tag of the request"),
        ("text" = Option<String>, Query, description = "Words in texts of the request or the response, or a number in the input or the output"),
        ("since" = Option<String>, Query, description = "Written at this time or later (RFC 3339)"),
        ("until" = Option<String>, Query, description = "Written before this time (RFC 3339)"),
        ("before" = Option<Uuid>, Query, description = "The `next` of the previous page"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500, description = "50 when absent"),
    ),
    responses((status = 200, body = CallPage)))]
pub async fn list(caller: Caller, mut query: Query) -> Reply<CallPage> {
    let asked = CallQuery {
        state: query.take_optional::<CallState>("state", "queued, claimed, running or finished"),
        tool: query.take_text("tool"),
        agent_id: query.take_optional("agent_id", "the id of an agent, a UUID"),
        session: query.take_text("session"),
        status: query.take_optional::<ResponseStatus>("status", "success or error"),
        error_code: query.take_optional::<ErrorCode>("error_code", "an error code such as Timeout"),
        parent: query.take_optional("parent", "the id of a request's record, a UUID"),
        request_id: query.take_text("request_id"),
        tag: query.take_text("tag"),
        text: query.take_text("text"),
        since: query.take_optional::<DateTime<Utc>>("since", TIME),
        until: query.take_optional::<DateTime<Utc>>("until", TIME),
        before: query.take_optional("before", "the `next` of a page"),
        limit: query.take_as("limit", "a number from 1 to 500", PAGE),
    };
    query.finish()?;
    Ok(Json(caller.store.list_calls(&asked).await?))
}

/// Read a call
///
/// Its state, request, response with the output, attempts, stages and the calls that it asked for.
/// For a call by its `requestId`, list calls with `request_id`.
#[utoipa::path(get, path = "/calls/{request_id}", tag = "calls", operation_id = "get_call",
    params(("request_id" = Uuid, Path, description = "The id of the request's record")),
    responses((status = 200, body = CallDetails)))]
pub async fn get(caller: Caller, PathId(request): PathId, query: Query) -> Reply<CallDetails> {
    query.finish()?;
    Ok(Json(caller.store.call_details(request).await?))
}

/// Count finished calls
///
/// Counts, failures by code and percentiles of durations, for all tools and for each. The cost does
/// not depend on the number of calls. Counts are exact; percentiles are within 10 %.
#[utoipa::path(get, path = "/calls/stats", tag = "calls", operation_id = "call_stats",
    params(
        ("tool" = Option<String>, Query, description = "Only this tool"),
        ("window" = Option<String>, Query,
            description = "The time up to now, such as `15m`, `24h` or `7d`: 1 minute to 31 days; `1h` when absent"),
    ),
    responses((status = 200, body = CallStats)))]
pub async fn stats(caller: Caller, mut query: Query) -> Reply<CallStats> {
    let tool = query.take_text("tool");
    let window = query.take_text("window");
    let seconds = window.as_ref().map_or(Some(WINDOW), |window| ttl_seconds(&Value::from(window.as_str())));
    if seconds.is_none() {
        query.wrong("window", "must be a number and a unit: 15m, 24h, 7d");
    }
    query.finish()?;
    let asked = CallStatsQuery { tool, window_seconds: seconds.unwrap_or(WINDOW) };
    Ok(Json(caller.store.call_stats(&asked).await?))
}
