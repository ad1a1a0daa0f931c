//! The egress log: requests through the egress gate, with their callers and outcomes. It contains
//! no paths, headers or bodies.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Violations;
use crate::names::names;

/// The most entries in one read or write.
pub const MAX_EGRESS_ENTRIES: usize = 1000;
/// The longest reason, in characters.
pub const MAX_EGRESS_REASON: usize = 300;

/// The outcome of a request through the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EgressOutcome {
    /// The server responded, with any status.
    Answered,
    /// The gate refused it.
    Refused,
    /// It was allowed, but got no response.
    Failed,
}

names!(EgressOutcome, "outcome", { Answered => "answered", Refused => "refused", Failed => "failed" });

/// One request through the gate. Each followed redirect is a separate request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EgressRecord {
    /// When the request started.
    pub at: DateTime<Utc>,
    /// The agent that asked for the call.
    #[serde(default)]
    pub agent_id: Option<Uuid>,
    /// The tool's name; `webhooks` for deliveries to webhooks.
    #[schema(min_length = 1, max_length = 200)]
    pub tool: String,
    /// The tool's record.
    #[serde(default)]
    pub tool_id: Option<Uuid>,
    /// The `tool.request.v1` record of the call. For a webhook delivery, the delivery's id.
    #[serde(default)]
    pub call: Option<Uuid>,
    /// The host that was checked: a lower-case name or an address.
    #[schema(min_length = 1, max_length = 260)]
    pub host: String,
    pub port: u16,
    /// `GET` and so on; `_OTHER` for non-standard methods.
    #[schema(min_length = 1, max_length = 20)]
    pub method: String,
    pub outcome: EgressOutcome,
    /// Why it was refused.
    #[serde(default)]
    #[schema(max_length = 300)]
    pub reason: Option<String>,
    /// The HTTP status of the response.
    #[serde(default)]
    pub status: Option<u16>,
    /// Bytes of the request's body.
    pub bytes_out: u64,
    /// Bytes read of the response's body, as received.
    pub bytes_in: u64,
    /// Time until the response's body was read or abandoned, in milliseconds.
    pub duration_ms: u64,
}

impl EgressRecord {
    /// Checks the record. `field_path` is its path in the input.
    pub fn check(&self, field_path: &str) -> Result<(), Violations> {
        let mut found = Violations::default();
        found.text(&format!("{field_path}.tool"), &self.tool, 200);
        found.text(&format!("{field_path}.host"), &self.host, 260);
        found.text(&format!("{field_path}.method"), &self.method, 20);
        if let Some(reason) = &self.reason {
            found.text(&format!("{field_path}.reason"), reason, MAX_EGRESS_REASON);
        }
        if (self.outcome == EgressOutcome::Answered) != self.status.is_some() {
            found.add(format!("{field_path}.status"), "must be present if and only if the outcome is answered");
        }
        let numbers = [("bytes_out", self.bytes_out), ("bytes_in", self.bytes_in), ("duration_ms", self.duration_ms)];
        for (field, _) in numbers.into_iter().filter(|(_, number)| i64::try_from(*number).is_err()) {
            found.add(format!("{field_path}.{field}"), "is too large");
        }
        found.into_result()
    }
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EgressEntry {
    /// Later entries have larger ids.
    pub id: i64,
    #[serde(flatten)]
    pub record: EgressRecord,
}

/// Selects log entries. All conditions must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EgressQuery {
    pub tool: Option<String>,
    pub host: Option<String>,
    pub agent_id: Option<Uuid>,
    pub call: Option<Uuid>,
    pub outcome: Option<EgressOutcome>,
    /// Requests that started at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Requests that started before this time.
    pub until: Option<DateTime<Utc>>,
    /// Only entries with a smaller id, for paging: the last id of the previous page.
    pub before: Option<i64>,
    /// 1 to [`MAX_EGRESS_ENTRIES`].
    pub limit: u32,
}
