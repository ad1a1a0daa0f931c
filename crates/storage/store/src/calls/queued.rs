//! The row of a call in the queue.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Call, CallState, Lease, RequestKind, StoreError, ToolFailure, ToolRequest};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

macro_rules! call_columns {
    () => {
        "request, creates_tool, tool, request_id, workspace, agent_id, state, attempt, max_attempts, cancel_requested, response, \
         queued_at, (extract(epoch FROM deadline_at - queued_at) * 1000)::bigint AS deadline_ms, \
         (extract(epoch FROM deadline_at - clock_timestamp()) * 1000)::float8 AS left_ms"
    };
}
pub(super) use call_columns;

from_row! {
    pub(super) struct CallRow {
        pub(super) request: Uuid,
        creates_tool: bool,
        pub(super) tool: String,
        request_id: String,
        workspace: Option<String>,
        pub(super) agent_id: Option<Uuid>,
        state: String,
        pub(super) attempt: i32,
        pub(super) max_attempts: i32,
        pub(super) cancel_requested: bool,
        response: Option<Uuid>,
        queued_at: DateTime<Utc>,
        deadline_ms: Option<i64>,
        left_ms: Option<f64>,
    }
}

impl CallRow {
    /// Whether the request's deadline will have passed this many milliseconds from now.
    pub(super) fn is_overdue_in(&self, ms: u64) -> bool {
        self.left_ms.is_some_and(|left| left <= ms as f64)
    }

    /// Whether a runner got the call when it was written, and this is that lease (see
    /// `write_batch`).
    pub(super) fn was_claimed_at_write(&self, lease: Lease) -> bool {
        self.attempt == 1 && lease.fence == self.queued_at.timestamp_micros()
    }

    /// The failure of a request that missed its deadline. `when`: for example "before the tool
    /// ran".
    pub(super) fn deadline_failure(&self, when: &str) -> ToolFailure {
        ToolFailure::deadline_passed(self.deadline_ms.unwrap_or_default().unsigned_abs(), when)
    }

    pub(super) fn state(&self) -> CallState {
        match self.state.as_str() {
            "queued" => CallState::Queued,
            "claimed" => CallState::Claimed,
            "running" => CallState::Running,
            // The column's CHECK allows no other value.
            _ => CallState::Finished,
        }
    }

    pub(super) fn kind(&self) -> RequestKind {
        if self.creates_tool { RequestKind::Creation } else { RequestKind::Call }
    }

    /// The request, with what a response needs of it.
    pub(super) fn as_request(&self) -> ToolRequest {
        ToolRequest {
            id: self.request,
            kind: self.kind(),
            request_id: self.request_id.clone(),
            tool: self.tool.clone(),
            input: Value::Object(Map::new()),
            workspace: self.workspace.clone(),
            agent_id: self.agent_id,
            ..ToolRequest::default()
        }
    }
}

impl From<CallRow> for Call {
    fn from(row: CallRow) -> Self {
        Self {
            state: row.state(),
            request: row.request,
            tool: row.tool,
            attempt: row.attempt.unsigned_abs(),
            max_attempts: row.max_attempts.unsigned_abs(),
            cancel_requested: row.cancel_requested,
            response: row.response,
            queued_at: row.queued_at,
        }
    }
}

pub(super) fn unknown(request: Uuid) -> StoreError {
    StoreError::NotFound { what: "request", id: request }
}

pub(crate) async fn find(tx: &mut TenantTransaction, request: Uuid) -> Result<Call> {
    let row: Option<CallRow> = sqlx::query_as(concat!("SELECT ", call_columns!(), " FROM calls WHERE request = $1"))
        .bind(request)
        .fetch_optional(tx.connection())
        .await?;
    Ok(row.ok_or_else(|| unknown(request))?.into())
}

/// Locks the call until the transaction ends, and returns it.
pub(super) async fn lock_call(tx: &mut TenantTransaction, request: Uuid) -> Result<Option<CallRow>> {
    Ok(sqlx::query_as(concat!("SELECT ", call_columns!(), " FROM calls WHERE request = $1 FOR UPDATE"))
        .bind(request)
        .fetch_optional(tx.connection())
        .await?)
}
