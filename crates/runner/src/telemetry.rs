//! What is counted: invocations and their time, by tool and status.

use std::sync::Once;
use std::time::Duration;

use breadcrumb::ResponseStatus;

const INVOCATIONS: &str = "rcrt_tool_invocations_total";
const DURATION: &str = "rcrt_tool_invoke_duration_seconds";

/// Stands for every name that no tool has: callers must not be able to make new labels.
pub(crate) const UNKNOWN_TOOL: &str = "(unknown)";

pub(crate) fn describe() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        metrics::describe_counter!(INVOCATIONS, "Answered tool requests, by tool and status");
        metrics::describe_histogram!(DURATION, metrics::Unit::Seconds, "Execution time of answered tool requests");
    });
}

/// One answer. `tool` is a known tool's name, or `None`.
pub(crate) fn answered(tool: Option<&str>, status: ResponseStatus, elapsed: Duration) {
    let labels = [
        ("tool", tool.unwrap_or(UNKNOWN_TOOL).to_owned()),
        ("status", if status == ResponseStatus::Success { "success" } else { "error" }.to_owned()),
    ];
    metrics::counter!(INVOCATIONS, &labels).increment(1);
    metrics::histogram!(DURATION, &labels).record(elapsed.as_secs_f64());
}
