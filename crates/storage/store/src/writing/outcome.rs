//! What the queue of calls stores of a response, and what a response must be.

use rcrt_breadcrumb::{ErrorCode, NewBreadcrumb, RequestKind, Violations, schema_names};
use serde_json::Value;

/// What the queue stores of a response.
pub(crate) struct ResponseOutcome {
    /// `None` for a success.
    pub(crate) error_code: Option<ErrorCode>,
    /// How long the tool ran, in microseconds. `None` if it did not run.
    pub(crate) run_us: Option<i64>,
}

impl ResponseOutcome {
    pub(crate) fn of(response: &NewBreadcrumb) -> Self {
        let context = &response.context;
        // A creation that failed has another status.
        let has_failed =
            context.get("status").is_some_and(|status| status == "error") || context.contains_key("error_code");
        let code = context.get("error_code").and_then(Value::as_str).and_then(|code| code.parse().ok());
        // The stage is precise to the microsecond.
        let run = response.context.get("metadata").and_then(|metadata| metadata.get("stages")?.get("run_ms"));
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
    if RequestKind::is_response(response.schema_name.as_deref()) {
        Ok(())
    } else {
        Err(Violations::one("schema_name", format!("must be {}", schema_names::TOOL_RESPONSE)))
    }
}
