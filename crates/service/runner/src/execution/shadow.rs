//! The shadow of a call, and how its result compares with that of the call.

use std::sync::Arc;

use rcrt_breadcrumb::{ErrorCode, ShadowReport, ToolFailure};
use rcrt_executors::ToolCall;
use rcrt_validate::expected::differences;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::coordination::slots::Slots;
use crate::execution::speculative_run::takes_at_most;
use crate::registry::tool::Tool;

/// The largest output that is kept to be compared.
const MAX_OUTPUT: usize = 256 * 1024;

/// The shadow of a call, and what the call returned.
pub(crate) struct Shadow {
    /// The draft.
    pub tool: Arc<Tool>,
    /// The `tool.v1` that answers.
    pub legacy: Arc<Tool>,
    pub call: ToolCall,
    /// Whether some agents of the tenant cannot read the request, and so its response.
    pub is_hidden: bool,
    pub slots: Option<Arc<Slots>>,
    /// The call's result. `None` if it is too large to be kept.
    pub result: Option<Result<Value, ErrorCode>>,
}

/// How a run of a shadow ended.
pub(crate) enum Outcome {
    Same,
    Different(Vec<Value>),
    Failed(Value),
    Skipped,
}

impl Shadow {
    /// Takes the result that the call is answered with.
    pub fn answered(&mut self, result: &Result<Value, ToolFailure>) {
        self.result = match result {
            Ok(output) => takes_at_most(MAX_OUTPUT, output).then(|| Ok(output.clone())),
            Err(failure) => Some(Err(failure.code)),
        };
    }
}

/// `legacy`: the result that the call was answered with.
pub(crate) fn compared(request: Uuid, legacy: Result<Value, ErrorCode>, result: Result<Value, ToolFailure>) -> Outcome {
    let difference = |path: &str, message: &str, legacy: Option<Value>, code: Option<Value>| json!({"request": request, "path": path, "message": message, "legacy": legacy, "code": code});
    match (legacy, result) {
        (Ok(expected), Ok(output)) => {
            // What a service returns is compared as it is, not read as a matcher.
            let found = differences(&json!({"$literal": expected}), &output);
            if found.is_empty() {
                return Outcome::Same;
            }
            let each = found.into_iter().map(|one| difference(&one.path, &one.message, one.expected, one.actual));
            Outcome::Different(each.collect())
        }
        (Ok(_), Err(failure)) => Outcome::Failed(difference("$", &format!("failed: {failure}"), None, None)),
        (Err(code), Err(failure)) if code == failure.code => Outcome::Same,
        (Err(code), result) => {
            let other = result.map_or_else(|failure| failure.code.as_str(), |_| "an output");
            let message = format!("the tool.v1 failed with {code}; the code: {other}");
            Outcome::Different(vec![difference("$", &message, None, None)])
        }
    }
}

/// The report on one call.
pub(crate) fn report(tool: &Tool, legacy: &Tool, outcome: Outcome) -> ShadowReport {
    let mut report = ShadowReport {
        name: tool.name().to_owned(),
        tool_id: tool.id,
        definition_hash: tool.definition_hash.clone(),
        author: tool.author,
        legacy_id: legacy.id,
        legacy_hash: legacy.definition_hash.clone(),
        ..ShadowReport::default()
    };
    match outcome {
        Outcome::Same => report.same = 1,
        Outcome::Different(found) => (report.different, report.differences) = (1, found),
        Outcome::Failed(found) => (report.failed, report.differences) = (1, vec![found]),
        Outcome::Skipped => report.skipped = 1,
    }
    report
}
