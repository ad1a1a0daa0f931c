//! `tool.log.v1`: console lines of a call with `debug`, written while its tool runs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The context of a `tool.log.v1`: some console lines of one attempt. The records of an attempt, in
/// the order of `sequence`, have its lines in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolLog {
    pub request_id: String,
    /// The request's record.
    pub request: Uuid,
    pub tool: String,
    /// From 1.
    pub attempt: u32,
    /// The number of this record in its attempt, from 0.
    pub sequence: u64,
    /// The number of the first line in its attempt, from 0. There is a gap after lines that could
    /// not be written.
    pub first_line: u64,
    pub lines: Vec<LogLine>,
    /// How many lines of the attempt were left out so far: beyond a limit, or not written.
    pub dropped: u64,
    pub timestamp: String,
}

/// One console line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// `debug`, `log`, `info`, `warn` or `error`.
    pub level: String,
    pub message: String,
    /// Milliseconds since the attempt began to run.
    pub at_ms: u64,
}

impl ToolLog {
    /// How long a log record is kept after it was written, in seconds.
    pub const TTL_SECONDS: u64 = 24 * 60 * 60;

    /// The tag of each log record, beside `request:<request_id>` and the request's workspace.
    pub const TAG: &str = "tool:log";

    pub fn into_context(self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(context)) => context,
            _ => Map::new(),
        }
    }

    pub fn from_context(context: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        Self::deserialize(Value::Object(context.clone()))
    }

    /// The number of the line after the last one of this record.
    pub fn next_line(&self) -> u64 {
        self.first_line + self.lines.len() as u64
    }
}
