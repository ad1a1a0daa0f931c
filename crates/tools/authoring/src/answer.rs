//! Reads the input of a call, and makes its failures.

use rcrt_breadcrumb::{ErrorCode, StoreError, ToolFailure, Violations};
use rcrt_executors::ToolCall;
use rcrt_executors::builtin::refused;
use serde::de::DeserializeOwned;

pub(crate) fn read<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolFailure> {
    T::deserialize(&call.input).map_err(|error| invalid("input", error.to_string()))
}

pub(crate) fn invalid(field: &str, message: impl Into<String>) -> ToolFailure {
    refused(&Violations::one(field, message))
}

pub(crate) fn store(error: StoreError) -> ToolFailure {
    match error {
        StoreError::Invalid(violations) => refused(&violations),
        StoreError::Forbidden(why) => ToolFailure::new(ErrorCode::PermissionDenied, why),
        error @ StoreError::QuotaExceeded { .. } => ToolFailure::new(ErrorCode::ResourceExhausted, error.to_string()),
        error @ StoreError::Internal(_) => {
            tracing::error!(%error, "the store failed");
            ToolFailure::new(ErrorCode::ExecutionFailed, "the store failed; try again").retryable(true)
        }
        error => {
            let is_retryable = error.is_retryable();
            ToolFailure::new(ErrorCode::ExecutionFailed, error.to_string()).retryable(is_retryable)
        }
    }
}
