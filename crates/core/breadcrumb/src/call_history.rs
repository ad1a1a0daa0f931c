//! Calls as people and dashboards see them: a list with filters, one call in detail, and counts and
//! durations per tool.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::names::names;
use crate::{Breadcrumb, Call, CallState, ErrorCode, ResponseStatus, Violations};

/// The most calls in one page.
pub const MAX_CALLS: u32 = 500;
/// The longest window of [`CallStats`]: 31 days.
pub const MAX_STATS_SECONDS: u64 = 31 * 24 * 60 * 60;
/// The most characters of a text in a [`CallQuery`].
const MAX_TEXT: usize = 500;

/// Selects calls. All conditions must match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallQuery {
    pub state: Option<CallState>,
    pub tool: Option<String>,
    pub agent_id: Option<Uuid>,
    pub session: Option<String>,
    /// The status of the response: finished calls only.
    pub status: Option<ResponseStatus>,
    pub error_code: Option<ErrorCode>,
    /// The request whose call wrote this call's request.
    pub parent: Option<Uuid>,
    /// The caller's own id of the request, or the id of its record.
    pub request_id: Option<String>,
    /// A tag of the request.
    pub tag: Option<String>,
    /// Words in texts of the request or the response, or a number in the input or the output.
    pub text: Option<String>,
    /// Requests that were written at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Requests that were written before this time.
    pub until: Option<DateTime<Utc>>,
    /// The [`CallPage::next`] of the previous page.
    pub before: Option<Uuid>,
    /// 1 to [`MAX_CALLS`].
    pub limit: u32,
}

impl Default for CallQuery {
    fn default() -> Self {
        Self {
            state: None,
            tool: None,
            agent_id: None,
            session: None,
            status: None,
            error_code: None,
            parent: None,
            request_id: None,
            tag: None,
            text: None,
            since: None,
            until: None,
            before: None,
            limit: 50,
        }
    }
}

impl CallQuery {
    /// Checks the texts and the limit.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        let texts = [
            ("tool", &self.tool),
            ("session", &self.session),
            ("request_id", &self.request_id),
            ("tag", &self.tag),
            ("text", &self.text),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                found.text(field, text, MAX_TEXT);
            }
        }
        if !(1..=MAX_CALLS).contains(&self.limit) {
            found.add("limit", format!("must be from 1 to {MAX_CALLS}"));
        }
        found.into_result()
    }
}

/// A page of calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallPage {
    /// The newest first. A page can have fewer calls than the limit, or none, and still have a
    /// `next`: one page examines a bounded number of calls.
    pub calls: Vec<CallSummary>,
    /// The value of `before` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Uuid>,
}

/// A call in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallSummary {
    #[serde(flatten)]
    pub call: Call,
    /// The caller's own id, or the id of the request's record.
    pub request_id: String,
    /// The agent that asked for the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The request whose call wrote this call's request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Uuid>,
    /// The status of the response, once the call is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ResponseStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// When a runner last claimed the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<DateTime<Utc>>,
    /// When the last attempt was started. Absent for a call that only computes and ended at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<DateTime<Utc>>,
    /// How long the finished call took: from the write of the request to that of the response, or
    /// the tool's run if that is longer. A tool can run before its request is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

/// One call, with everything that is stored about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallDetails {
    #[serde(flatten)]
    pub summary: CallSummary,
    /// The runner that has the call or finished it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_id: Option<Uuid>,
    /// The trace of the call, 32 hex digits. A call without a `traceparent` begins a trace. Its id
    /// is that of the request without dashes, unless its runner exports traces.
    pub trace_id: String,
    /// The attempts that were started, oldest first.
    pub attempts: Vec<CallAttempt>,
    /// What the last attempt spent its time on, in order.
    pub stages: Vec<CallStage>,
    /// The calls that this call's tool asked for, newest first, at most 100.
    pub children: Vec<CallSummary>,
    /// The request. Absent if it was deleted, or if reading it is limited or not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_record: Option<Breadcrumb>,
    /// The response, under the same conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_record: Option<Breadcrumb>,
}

/// One attempt to run a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallAttempt {
    /// From 1.
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// `success`, `error`, `retry` (it failed and was tried again) or `runner_lost`; absent while
    /// it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// A part of a call's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallStage {
    /// `queue`, `claim`, `load`, `run` or `write`.
    pub name: String,
    pub started_at: DateTime<Utc>,
    /// Absent while the stage lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

/// Selects finished calls for [`CallStats`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStatsQuery {
    pub tool: Option<String>,
    /// The length of the window up to now: 60 to [`MAX_STATS_SECONDS`].
    pub window_seconds: u64,
}

impl CallStatsQuery {
    /// Checks the window and the tool's name.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if let Some(tool) = &self.tool {
            found.text("tool", tool, MAX_TEXT);
        }
        if !(60..=MAX_STATS_SECONDS).contains(&self.window_seconds) {
            found.add("window", "must be from 60 seconds to 31 days, such as 15m, 24h or 7d");
        }
        found.into_result()
    }
}

/// Counts and durations of the calls that finished in a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallStats {
    /// The beginning of the window: that of its first interval.
    pub since: DateTime<Utc>,
    pub until: DateTime<Utc>,
    /// The length of an interval: 60 for windows up to three hours, otherwise 3600.
    pub interval_seconds: u32,
    pub all: ToolStats,
    /// By tool, the most calls first. Calls that did not run, of tools that do not exist, are
    /// `(unknown)`.
    pub tools: Vec<ToolStats>,
    /// The intervals in which calls finished, oldest first.
    pub intervals: Vec<CallInterval>,
}

/// The finished calls of one tool, or of all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolStats {
    /// Absent for all tools together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Exact, as are all counts.
    pub calls: u64,
    pub per_second: f64,
    pub failed: u64,
    /// Failed calls by error code.
    pub failures: BTreeMap<String, u64>,
    /// As in a call's `duration_ms`. Percentiles are within 10 % of the exact value.
    pub duration_ms: Percentiles,
    /// The tool alone, of the calls that ran.
    pub run_ms: Percentiles,
}

/// Percentiles in milliseconds. All are 0 if there is no call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Percentiles {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

/// The calls that finished in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallInterval {
    pub start: DateTime<Utc>,
    pub calls: u64,
    pub failed: u64,
    /// As in [`ToolStats::duration_ms`].
    pub duration_ms: Percentiles,
}

/// The unfinished calls of one tool of one tenant, for metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedCalls {
    pub owner_id: Uuid,
    pub tool: String,
    pub queued: u64,
    pub claimed: u64,
    pub running: u64,
    /// How long the oldest queued call has waited.
    pub oldest_ms: Option<f64>,
}

names!(CallState, "state", { Queued => "queued", Claimed => "claimed", Running => "running", Finished => "finished" });

names!(ResponseStatus, "status", { Success => "success", Error => "error" });
