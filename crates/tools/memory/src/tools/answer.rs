//! Parses the input of a call, and creates its failures.

use rcrt_breadcrumb::{ErrorCode, StoreError, ToolFailure, Violations};
use rcrt_executors::ToolCall;
use rcrt_executors::builtin::refused;
use rcrt_large_results::StoredResultError;
use serde::de::DeserializeOwned;

pub(super) fn read<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolFailure> {
    T::deserialize(&call.input).map_err(|error| invalid("input", error.to_string()))
}

pub(super) fn invalid(field: &str, message: impl Into<String>) -> ToolFailure {
    refused(&Violations::one(field, message))
}

/// How many items to return: what the caller asked for, else `usual`; from 1 to `most`.
pub(super) fn limit(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, ToolFailure> {
    let limit = asked.unwrap_or(usual);
    if !(1..=most).contains(&limit) {
        return Err(invalid("limit", format!("must be from 1 to {most}")));
    }
    Ok(limit)
}

pub(super) fn failed(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
}

pub(super) fn store(error: StoreError) -> ToolFailure {
    match error {
        // What the store refuses came from the arguments: a value that is too large or contains
        // NUL.
        StoreError::Invalid(mut violations) => {
            for violation in &mut violations.0 {
                if let Some(field) = violation.field.strip_prefix("context.") {
                    violation.field = field.to_owned();
                }
            }
            refused(&violations)
        }
        StoreError::TooLarge { limit } => {
            invalid("value", format!("is too large: at most {limit} bytes of JSON can be stored"))
        }
        StoreError::Forbidden(why) => ToolFailure::new(ErrorCode::PermissionDenied, why),
        error @ StoreError::QuotaExceeded { .. } => ToolFailure::new(ErrorCode::ResourceExhausted, error.to_string()),
        error @ StoreError::Internal(_) => {
            tracing::error!(%error, "the store failed");
            failed("the store failed; the runner's log has the cause")
        }
        error => {
            let is_retryable = error.is_retryable();
            failed(error.to_string()).retryable(is_retryable)
        }
    }
}

/// The failure for a stored result that cannot be read.
pub(super) fn stored(error: StoredResultError) -> ToolFailure {
    match error {
        StoredResultError::Key(wrong) => invalid("key", wrong),
        StoredResultError::Gone(what) => failed(format!("{what} is no longer stored; call the tool again")),
        StoredResultError::Store(error) => store(error),
    }
}

pub(super) fn no_result(key: &str) -> ToolFailure {
    failed(format!(
        "nothing is kept under {key:?}; large results are stored for a limited time: call the tool again, or see \
         list_working_memory"
    ))
}
