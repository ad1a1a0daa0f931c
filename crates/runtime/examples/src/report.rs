//! What came of an example.

use rcrt_sandbox::ConsoleLine;
use rcrt_validate::expected::Difference;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whether an example holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExampleStatus {
    Passed,
    Failed,
    /// It could not be tried; `reason` says why. This is neither a success nor a failure.
    NotRun,
}

/// The field that an example lacks and that is needed to run it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingField {
    Http,
    Calls,
}

impl MissingField {
    /// How to fix it.
    pub fn fix(self) -> &'static str {
        match self {
            Self::Http => "Add `http` to the example: the requests that the tool makes, and their responses",
            Self::Calls => "Add `calls` to the example: the calls of other tools, and their results",
        }
    }
}

/// One example with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExampleReport {
    pub description: String,
    pub status: ExampleStatus,
    /// Whether `status` is `passed`.
    pub passed: bool,
    /// Why it was not run, or a failure that is not a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of an example that was not run for this reason.
    #[serde(skip)]
    pub missing: Option<MissingField>,
    /// The output or `{"error": {code, message}}` that the example states, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// The tool's output, or `{"error": {code, message}}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
    /// Places where the result, or what was written, is not as the example states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// What the tool wrote with `context.api`, in order. Nothing of it was stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub console: Vec<ConsoleLine>,
    pub duration_ms: u64,
}

impl ExampleReport {
    /// An example that is not run.
    pub(crate) fn not_run(description: &str, reason: impl Into<String>) -> Self {
        Self::of(description, ExampleStatus::NotRun, Some(reason.into()))
    }

    /// An example that fails before it runs.
    pub(crate) fn failed(description: &str, reason: impl Into<String>) -> Self {
        Self::of(description, ExampleStatus::Failed, Some(reason.into()))
    }

    pub(crate) fn of(description: &str, status: ExampleStatus, reason: Option<String>) -> Self {
        Self {
            description: description.to_owned(),
            status,
            passed: status == ExampleStatus::Passed,
            reason,
            missing: None,
            expected: None,
            actual: None,
            differences: Vec::new(),
            writes: Vec::new(),
            console: Vec::new(),
            duration_ms: 0,
        }
    }
}

/// Whether an example of these failed.
pub fn has_failed(reports: &[ExampleReport]) -> bool {
    reports.iter().any(|report| report.status == ExampleStatus::Failed)
}
