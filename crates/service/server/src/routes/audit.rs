//! The audit log, and the egress log, which runners write. Curators read both.

use axum::Json;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{AuditEntry, AuditQuery, EgressEntry, EgressOutcome, EgressQuery, EgressRecord, Violations};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::query::Query;
use crate::routes::replies::{Done, Reply};

/// Entries of a page if the caller sets no limit.
const PAGE: u32 = 100;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EgressRecords {
    /// At most 1000.
    #[schema(min_items = 1)]
    entries: Vec<EgressRecord>,
}

/// A page of the audit log.
#[derive(Serialize, ToSchema)]
pub struct AuditPage {
    /// The newest first.
    entries: Vec<AuditEntry>,
    /// The value of `before` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
}

/// Read the audit log
///
/// Changes of agents, tokens, grants, secrets and tools, and uses of secrets. An entry is written
/// in the transaction of the change. The word before the dot is the group of an action: `agent`
/// (`agent.created`, `agent.changed`, `agent.key_rotated`, `agent.deleted`), `token`
/// (`token.revoked`, and `token.all_revoked` for all tokens of an agent), `acl` (`acl.granted`,
/// `acl.revoked`), `secret` (`secret.created`, `secret.decrypted` and so on), `tool`
/// (`tool.created`, `tool.changed`, `tool.deleted`, `tool.expired`, `tool.imported`) and `webhook`
/// (`webhook.created`, `webhook.deleted`, `webhook.secret_set`, `webhook.secret_rewrapped`).
#[utoipa::path(get, path = "/audit", tag = "audit", operation_id = "audit_log",
    params(
        ("action" = Option<String>, Query, description = "An action, such as `secret.decrypted`, or a group, such as `secret`"),
        ("agent_id" = Option<Uuid>, Query, description = "The agent that did it"),
        ("subject" = Option<Uuid>, Query, description = "The id of what was changed or used"),
        ("tool_id" = Option<Uuid>, Query, description = "The tool for which it was done"),
        ("since" = Option<String>, Query, description = "At this time or later (RFC 3339)"),
        ("until" = Option<String>, Query, description = "Before this time (RFC 3339)"),
        ("before" = Option<i64>, Query, description = "The `next` of the previous page"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "100 when absent"),
    ),
    responses((status = 200, body = AuditPage)))]
pub async fn log(caller: Caller, mut query: Query) -> Reply<AuditPage> {
    let asked = AuditQuery {
        action: query.take_text("action"),
        agent_id: query.take_optional("agent_id", "the id of an agent, a UUID"),
        subject: query.take_optional("subject", "an id, a UUID"),
        tool_id: query.take_optional("tool_id", "the id of a tool's record, a UUID"),
        since: query.take_optional::<DateTime<Utc>>("since", "a time such as 2026-01-31T12:00:00Z"),
        until: query.take_optional::<DateTime<Utc>>("until", "a time such as 2026-01-31T12:00:00Z"),
        before: query.take_optional("before", "the `next` of a page"),
        limit: query.take_as("limit", "a number from 1 to 1000", PAGE),
    };
    query.finish()?;
    let entries = caller.store.audit_log(&asked).await?;
    let is_full = entries.len() == asked.limit as usize;
    let next = entries.last().filter(|_| is_full).map(|entry| entry.id);
    Ok(Json(AuditPage { entries, next }))
}

/// A page of the egress log.
#[derive(Serialize, ToSchema)]
pub struct EgressPage {
    /// The newest first.
    entries: Vec<EgressEntry>,
    /// The value of `before` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
}

/// Read the egress log
///
/// The requests of tools and webhooks of the tenant to other servers, and the refused ones: hosts,
/// sizes and times, but no paths, headers or bodies. Entries appear some seconds after the request.
#[utoipa::path(get, path = "/audit/egress", tag = "audit", operation_id = "egress_log",
    params(
        ("tool" = Option<String>, Query, description = "The tool's name; `webhooks` for deliveries"),
        ("host" = Option<String>, Query, description = "The host, as written in the log"),
        ("agent_id" = Option<Uuid>, Query, description = "The agent that requested the call"),
        ("call" = Option<Uuid>, Query, description = "The id of the call's request"),
        ("outcome" = Option<String>, Query, description = "`answered`, `refused` or `failed`"),
        ("since" = Option<String>, Query, description = "Started at this time or later (RFC 3339)"),
        ("until" = Option<String>, Query, description = "Started before this time (RFC 3339)"),
        ("before" = Option<i64>, Query, description = "The `next` of the previous page"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "100 when absent"),
    ),
    responses((status = 200, body = EgressPage)))]
pub async fn egress(caller: Caller, mut query: Query) -> Reply<EgressPage> {
    let asked = EgressQuery {
        tool: query.take_text("tool"),
        host: query.take_text("host"),
        agent_id: query.take_optional("agent_id", "the id of an agent, a UUID"),
        call: query.take_optional("call", "the id of a request's record, a UUID"),
        outcome: query.take_optional::<EgressOutcome>("outcome", "answered, refused or failed"),
        since: query.take_optional::<DateTime<Utc>>("since", "a time such as 2026-01-31T12:00:00Z"),
        until: query.take_optional::<DateTime<Utc>>("until", "a time such as 2026-01-31T12:00:00Z"),
        before: query.take_optional("before", "the `next` of a page"),
        limit: query.take_as("limit", "a number from 1 to 1000", PAGE),
    };
    query.finish()?;
    let entries = caller.store.egress_log(&asked).await?;
    let is_full = entries.len() == asked.limit as usize;
    let next = entries.last().filter(|_| is_full).map(|entry| entry.id);
    Ok(Json(EgressPage { entries, next }))
}

/// Add to the egress log
///
/// For runners that work over HTTP.
#[utoipa::path(post, path = "/audit/egress", tag = "audit", operation_id = "log_egress",
    request_body = EgressRecords, responses((status = 200, body = Done)))]
pub async fn log_egress(caller: Caller, JsonBody(EgressRecords { entries }): JsonBody<EgressRecords>) -> Reply<Done> {
    if entries.is_empty() {
        return Err(Violations::one("entries", "must have at least one entry").into());
    }
    caller.store.log_egress(entries).await?;
    Ok(Done::JSON)
}
