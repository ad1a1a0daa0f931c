//! Failures, as callers see them.

use rcrt_breadcrumb::{ErrorCode, StoreError, ToolFailure, Violations};
use rcrt_executors::ToolCall;
use rcrt_executors::builtin::refused;
use serde::de::DeserializeOwned;

pub(crate) fn read_input<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolFailure> {
    serde_path_to_error::deserialize(&call.input).map_err(|error| match error.path().to_string() {
        path if path == "." => invalid("", error.inner().to_string()),
        path => invalid(&path, error.inner().to_string()),
    })
}

/// `field` is the invalid argument; empty for the whole input.
pub(crate) fn invalid(field: &str, message: impl Into<String>) -> ToolFailure {
    refused(&Violations::one(field, message))
}

pub(crate) fn failed(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
}

pub(crate) fn denied(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::PermissionDenied, message)
}

pub(crate) fn from_store(error: StoreError) -> ToolFailure {
    let retryable = error.is_retryable();
    let code = match &error {
        StoreError::Invalid(_) | StoreError::TooLarge { .. } => ErrorCode::InvalidArguments,
        StoreError::Forbidden(_) | StoreError::Unauthorized(_) => ErrorCode::PermissionDenied,
        StoreError::QuotaExceeded { .. } => ErrorCode::ResourceExhausted,
        _ => ErrorCode::ExecutionFailed,
    };
    let message = match error {
        StoreError::Internal(detail) => {
            tracing::error!(detail, "the store failed in a tool for agents");
            "the store failed; the runner's log has the cause".to_owned()
        }
        other => other.to_string(),
    };
    ToolFailure::new(code, message).retryable(retryable)
}
