//! Lists of calls, newest first.
//!
//! The ids of requests are UUIDv7 and grow with time, so that a list reads the primary key from its
//! end and needs no index of its own. Failed calls, and calls that a call asked for, have small
//! indexes.

use chrono::{DateTime, TimeDelta, Utc};
use rcrt_breadcrumb::{Call, CallPage, CallQuery, CallState, CallSummary, ResponseStatus};
use serde_json::Number;
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

/// The most calls that one page examines. A list of a rare tool then takes several pages, and each
/// takes milliseconds.
const MAX_EXAMINED: i64 = 20_000;
/// The same if the words of each request and response are read.
const MAX_EXAMINED_FOR_TEXT: i64 = 2_000;
/// The clock of the process that made an id can differ this much from the database's.
const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(5);

/// A claim's fence is its time in microseconds.
const COLUMNS: &str = "c.request, c.tool, c.state, c.attempt, c.max_attempts, c.cancel_requested, c.response, c.queued_at, \
    c.request_id, c.agent_id, c.session, c.parent, c.error_code, CASE WHEN c.fence > 0 THEN c.fence END AS claimed_us, \
    c.started_at, c.finished_at, c.deadline_at, \
    CASE WHEN c.finished_at IS NOT NULL THEN call_us(c.queued_at, c.finished_at, c.run_us) END AS took_us";

from_row! {
    pub(super) struct SummaryRow {
        request: Uuid,
        tool: String,
        state: String,
        attempt: i32,
        max_attempts: i32,
        cancel_requested: bool,
        response: Option<Uuid>,
        queued_at: DateTime<Utc>,
        request_id: String,
        agent_id: Option<Uuid>,
        session: Option<String>,
        parent: Option<Uuid>,
        error_code: Option<String>,
        claimed_us: Option<i64>,
        started_at: Option<DateTime<Utc>>,
        finished_at: Option<DateTime<Utc>>,
        deadline_at: Option<DateTime<Utc>>,
        took_us: Option<i64>,
    }
}

impl From<SummaryRow> for CallSummary {
    fn from(row: SummaryRow) -> Self {
        // The column's CHECK allows no other value.
        let state = row.state.parse().unwrap_or(CallState::Finished);
        let status = if row.error_code.is_some() { ResponseStatus::Error } else { ResponseStatus::Success };
        let call = Call {
            request: row.request,
            tool: row.tool,
            state,
            attempt: row.attempt.unsigned_abs(),
            max_attempts: row.max_attempts.unsigned_abs(),
            cancel_requested: row.cancel_requested,
            response: row.response,
            queued_at: row.queued_at,
        };
        Self {
            call,
            request_id: row.request_id,
            agent_id: row.agent_id,
            session: row.session,
            parent: row.parent,
            status: (state == CallState::Finished).then_some(status),
            error_code: row.error_code.and_then(|code| code.parse().ok()),
            claimed_at: row
                .claimed_us
                .filter(|_| state != CallState::Queued)
                .and_then(DateTime::<Utc>::from_timestamp_micros),
            started_at: row.started_at,
            finished_at: row.finished_at,
            deadline_at: row.deadline_at,
            duration_ms: row.took_us.map(|us| us as f64 / 1000.0),
        }
    }
}

/// The rows among which a list looks, by the index that finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Few rows, found by a partial index whatever the planner expects.
    Few,
    /// Many rows, read in the order of the ids.
    Many,
}

/// `agent`: whose rights apply; `None` if it sees all calls of the tenant.
pub(crate) async fn list(tx: &mut TenantTransaction, agent: Option<Uuid>, query: &CallQuery) -> Result<CallPage> {
    let mut floor: Option<Uuid> = None;
    if source(query) == Source::Many {
        let most = if query.text.is_some() { MAX_EXAMINED_FOR_TEXT } else { MAX_EXAMINED };
        let mut sql = QueryBuilder::new("SELECT c.request FROM calls c WHERE ");
        push_source(&mut sql, tx.owner_id, query);
        sql.push(" ORDER BY c.request DESC OFFSET ").push_bind(most - 1).push(" LIMIT 1");
        floor = sql.build_query_scalar::<Uuid>().persistent(false).fetch_optional(tx.connection()).await?;
    }
    let mut sql = QueryBuilder::new("");
    if source(query) == Source::Few {
        sql.push("WITH c AS MATERIALIZED (SELECT * FROM calls c WHERE ");
        push_source(&mut sql, tx.owner_id, query);
        sql.push(") SELECT ").push(COLUMNS).push(" FROM c WHERE true");
    } else {
        sql.push("SELECT ").push(COLUMNS).push(" FROM calls c WHERE ");
        push_source(&mut sql, tx.owner_id, query);
    }
    if let Some(floor) = floor {
        sql.push(" AND c.request >= ").push_bind(floor);
    }
    push_filters(&mut sql, query);
    if let Some(agent) = agent {
        sql.push(" AND (c.agent_id = ").push_bind(agent).push(" OR can_see_record(c.request))");
    }
    sql.push(" ORDER BY c.request DESC LIMIT ").push_bind(i64::from(query.limit));
    let rows: Vec<SummaryRow> = sql.build_query_as().persistent(false).fetch_all(tx.connection()).await?;
    let is_full = rows.len() == query.limit as usize;
    let calls: Vec<CallSummary> = rows.into_iter().map(CallSummary::from).collect();
    let next = if is_full { calls.last().map(|last| last.call.request) } else { floor };
    Ok(CallPage { calls, next })
}

/// One call, without a check of rights.
pub(super) async fn find(tx: &mut TenantTransaction, request: Uuid) -> Result<Option<CallSummary>> {
    let mut sql = QueryBuilder::<Postgres>::new("SELECT ");
    sql.push(COLUMNS).push(" FROM calls c WHERE c.owner_id = ").push_bind(tx.owner_id);
    sql.push(" AND c.request = ").push_bind(request);
    let row: Option<SummaryRow> = sql.build_query_as().fetch_optional(tx.connection()).await?;
    Ok(row.map(CallSummary::from))
}

fn source(query: &CallQuery) -> Source {
    let is_unfinished = matches!(query.state, Some(state) if state != CallState::Finished);
    if query.request_id.is_some() || query.parent.is_some() || is_unfinished { Source::Few } else { Source::Many }
}

/// The conditions that an index finds.
fn push_source(sql: &mut QueryBuilder<Postgres>, owner_id: Uuid, query: &CallQuery) {
    sql.push("c.owner_id = ").push_bind(owner_id);
    if let Some(request_id) = &query.request_id {
        push_request_id(sql, owner_id, request_id);
    } else if let Some(parent) = query.parent {
        sql.push(" AND c.parent IS NOT NULL AND c.parent = ").push_bind(parent);
    } else {
        match query.state {
            Some(CallState::Queued) => sql.push(" AND c.runner_id IS NULL AND c.response IS NULL"),
            Some(CallState::Claimed | CallState::Running) => sql.push(" AND c.runner_id IS NOT NULL"),
            Some(CallState::Finished) | None => {
                let has_failed = query.status == Some(ResponseStatus::Error) || query.error_code.is_some();
                sql.push(if has_failed { " AND c.error_code IS NOT NULL" } else { "" })
            }
        };
    }
    if let Some(before) = query.before {
        sql.push(" AND c.request < ").push_bind(before);
    }
    if let Some(since) = query.since {
        sql.push(" AND c.request >= ").push_bind(first_id(since - CLOCK_DIFFERENCE));
    }
    if let Some(until) = query.until {
        sql.push(" AND c.request < ").push_bind(first_id(until + CLOCK_DIFFERENCE));
    }
}

/// The index has the ids that are not those of the requests' records.
fn push_request_id(sql: &mut QueryBuilder<Postgres>, owner_id: Uuid, request_id: &str) {
    sql.push(" AND c.request = ANY (ARRAY(SELECT f.request FROM calls f WHERE f.owner_id = ").push_bind(owner_id);
    sql.push(" AND f.request_id <> f.request::text AND f.request_id = ").push_bind(request_id.to_owned());
    sql.push(" UNION SELECT i.request FROM calls i WHERE i.owner_id = ").push_bind(owner_id);
    sql.push(" AND i.request = ").push_bind(request_id.parse::<Uuid>().ok()).push("))");
}

fn push_filters(sql: &mut QueryBuilder<Postgres>, query: &CallQuery) {
    if let Some(state) = query.state {
        sql.push(" AND c.state = ").push_bind(state.as_str());
    }
    if let Some(tool) = &query.tool {
        sql.push(" AND c.tool = ").push_bind(tool.clone());
    }
    if let Some(agent) = query.agent_id {
        sql.push(" AND c.agent_id = ").push_bind(agent);
    }
    if let Some(session) = &query.session {
        sql.push(" AND c.session = ").push_bind(session.clone());
    }
    if let Some(parent) = query.parent {
        sql.push(" AND c.parent = ").push_bind(parent);
    }
    match query.status {
        Some(ResponseStatus::Success) => {
            sql.push(" AND c.state = 'finished' AND c.error_code IS NULL");
        }
        Some(ResponseStatus::Error) => {
            sql.push(" AND c.error_code IS NOT NULL");
        }
        None => {}
    }
    if let Some(code) = query.error_code {
        sql.push(" AND c.error_code = ").push_bind(code.as_str());
    }
    if let Some(since) = query.since {
        sql.push(" AND c.queued_at >= ").push_bind(since);
    }
    if let Some(until) = query.until {
        sql.push(" AND c.queued_at < ").push_bind(until);
    }
    if let Some(tag) = &query.tag {
        sql.push(" AND EXISTS (SELECT FROM breadcrumb_tags t WHERE t.owner_id = c.owner_id AND t.tag = ");
        sql.push_bind(tag.clone()).push(" AND t.breadcrumb_id = c.request)");
    }
    if let Some(text) = &query.text {
        // A secret record is read only by its id.
        sql.push(" AND EXISTS (SELECT FROM breadcrumbs b WHERE b.owner_id = c.owner_id");
        sql.push(" AND b.id = ANY (ARRAY[c.request, c.response]) AND b.sensitivity <> 'secret'");
        sql.push(" AND b.words @@ websearch_to_tsquery('english', ").push_bind(question(text)).push("))");
    }
}

/// A number in quotes, as it is indexed: `-5` would mean "not 5".
fn question(text: &str) -> String {
    match serde_json::from_str::<Number>(text.trim()) {
        Ok(number) => format!("\"{number}\""),
        Err(_) => text.to_owned(),
    }
}

/// The least id that is made at this time. Its first 48 bits are milliseconds.
fn first_id(at: DateTime<Utc>) -> Uuid {
    let ms = at.timestamp_millis().clamp(0, (1 << 48) - 1).unsigned_abs();
    Uuid::from_u128(u128::from(ms) << 80)
}
