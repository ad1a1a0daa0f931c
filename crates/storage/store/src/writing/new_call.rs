//! What the queue of calls stores of a new request, and what a response must be.

use rcrt_breadcrumb::{ClaimTerms, NewBreadcrumb, Profile, Profiles, Violations, schema_names};
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
            start: CallStart::Queued,
        })
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
