//! What the queue of calls stores of a new request, and what a response must be.

use rcrt_breadcrumb::{ClaimTerms, ErrorCode, NewBreadcrumb, Profile, Profiles, Violations, schema_names};
use serde_json::Value;
use uuid::Uuid;

use super::prepared::PreparedRecord;

/// The queue's row for a new request. It has enough to respond to the request after its record is
/// deleted.
pub(crate) struct NewCall {
    pub(crate) tool: String,
    pub(crate) request_id: String,
    pub(crate) workspace: Option<String>,
    /// The writer's profile, and those in the record's tags.
    pub(crate) profiles: Profiles,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) session: Option<String>,
    pub(crate) parent: Option<Uuid>,
    pub(crate) start: CallStart,
}

/// The state in which a call is written.
pub(crate) enum CallStart {
    Queued,
    Claimed(ClaimTerms),
    /// Finished, with this response and the tool's number of attempts.
    Answered(Box<PreparedRecord>, u32),
}

impl NewCall {
    /// `None` if the record is not a request. `profile`: its writer's.
    pub(crate) fn of(id: Uuid, record: &NewBreadcrumb, profile: Profile) -> Option<Self> {
        if record.schema_name.as_deref() != Some(schema_names::TOOL_REQUEST) {
            return None;
        }
        let text = |key: &str| record.context.get(key).and_then(Value::as_str);
        Some(Self {
            tool: text("tool").unwrap_or_default().to_owned(),
            request_id: text("requestId").map_or_else(|| id.to_string(), str::to_owned),
            workspace: record.tags.iter().find(|tag| tag.starts_with("workspace:")).cloned(),
            profiles: Profiles::of_record(profile, &record.tags),
            deadline_ms: record.context.get("deadline_ms").and_then(Value::as_u64),
            session: text("session").map(str::to_owned),
            parent: text("parent").and_then(|parent| parent.parse().ok()),
            start: CallStart::Queued,
        })
    }
}

/// What the queue stores of a response.
pub(crate) struct Outcome {
    /// `None` for a success.
    pub(crate) error_code: Option<ErrorCode>,
    /// How long the tool ran, in microseconds. `None` if it did not run.
    pub(crate) run_us: Option<i64>,
}

impl Outcome {
    pub(crate) fn of(response: &NewBreadcrumb) -> Self {
        let context = &response.context;
        let has_failed = context.get("status").is_some_and(|status| status == "error");
        let code = context.get("error_code").and_then(Value::as_str).and_then(|code| code.parse().ok());
        // The stage is precise to the microsecond.
        let run = response.context.get("metadata").and_then(|metadata| metadata.pointer("/stages/run_ms"));
        let run_ms = run.or_else(|| context.get("execution_time_ms")).and_then(Value::as_f64).unwrap_or_default();
        let run_us = (run_ms.max(0.0) * 1000.0) as i64;
        Self {
            error_code: has_failed.then(|| code.unwrap_or(ErrorCode::ExecutionFailed)),
            // A stage that was not reached is 0.
            run_us: (run_us > 0 || !has_failed).then_some(run_us),
        }
    }
}

pub(crate) fn check_response(response: &NewBreadcrumb) -> Result<(), Violations> {
    response.check()?;
    if response.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE) {
        Ok(())
    } else {
        Err(Violations::one("schema_name", format!("must be {}", schema_names::TOOL_RESPONSE)))
    }
}
