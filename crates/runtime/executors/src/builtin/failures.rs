//! Reads the input of a native tool, and makes the failures that it returns.

use rcrt_breadcrumb::{ErrorCode, StoreError, ToolFailure, Violations, type_violation};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::ToolCall;

/// Reads the input of a call. The failure names the invalid field.
pub fn read_input<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolFailure> {
    serde_path_to_error::deserialize(&call.input).map_err(|error| {
        let path = error.path().to_string();
        let mut violation = type_violation(if path == "." { "" } else { &path }, &error.inner().to_string());
        if violation.field.is_empty() {
            violation.message = format!("the input {}", violation.message);
        }
        refused(&Violations(vec![violation]))
    })
}

/// Reports invalid arguments: `InvalidArguments` with each violation, in the message and in the
/// details as `{"violations": [{field, message}]}`.
pub fn refused(violations: &Violations) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidArguments, violations.to_string())
        .with_details(json!({"violations": violations.0}))
}

/// Reports one invalid argument. `field` is empty for the whole input.
pub fn invalid(field: &str, message: impl Into<String>) -> ToolFailure {
    refused(&Violations::one(field, message))
}

pub fn failed(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
}

/// The failure of a call whose work in the store failed. The cause of an internal error is only
/// logged.
pub fn store_failed(error: StoreError) -> ToolFailure {
    let code = match error {
        StoreError::Invalid(violations) => return refused(&violations),
        StoreError::Internal(detail) => {
            tracing::error!(detail, "the store failed during a native tool's call");
            return failed("the store failed; the runner's log has the cause");
        }
        StoreError::TooLarge { .. } => ErrorCode::InvalidArguments,
        StoreError::Forbidden(_) | StoreError::Unauthorized(_) => ErrorCode::PermissionDenied,
        StoreError::QuotaExceeded { .. } | StoreError::QueueFull { .. } => ErrorCode::ResourceExhausted,
        _ => ErrorCode::ExecutionFailed,
    };
    ToolFailure::new(code, error.to_string()).retryable(error.is_retryable())
}
