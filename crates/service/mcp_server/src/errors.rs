//! The one place where errors of the store and failures of calls become errors of the protocol.

use rcrt_breadcrumb::{ErrorCode, StoreError, ToolFailure};
use rmcp::ErrorData;
use serde_json::json;

/// The error of a request that is not a call.
pub(crate) fn of_store(error: StoreError) -> ErrorData {
    match error {
        StoreError::NotFound { .. } => ErrorData::resource_not_found(error.to_string(), None),
        StoreError::Invalid(violations) => {
            ErrorData::invalid_params(violations.to_string(), Some(json!({"violations": violations})))
        }
        StoreError::Forbidden(_) | StoreError::Unauthorized(_) | StoreError::TooLarge { .. } => {
            ErrorData::invalid_request(error.to_string(), None)
        }
        StoreError::QueueFull { .. } | StoreError::Busy(_) | StoreError::Unavailable(_) | StoreError::Full => {
            ErrorData::internal_error(error.to_string(), None)
        }
        error => {
            tracing::error!(%error, "a request of an MCP client failed");
            ErrorData::internal_error("the server failed; its log has the reason", None)
        }
    }
}

/// The failure of a call whose request was refused, which a model should read. `None`: the client
/// or the server is at fault.
pub(crate) fn refused_call(error: &StoreError) -> Option<ToolFailure> {
    let code = match error {
        StoreError::Forbidden(_) => ErrorCode::PermissionDenied,
        StoreError::QuotaExceeded { .. } | StoreError::QueueFull { .. } => ErrorCode::ResourceExhausted,
        StoreError::Invalid(_) | StoreError::TooLarge { .. } => ErrorCode::InvalidArguments,
        _ => return None,
    };
    Some(ToolFailure::new(code, error.to_string()))
}

/// The protocol's error for a failure of this kind. `None`: the failure is a result with `isError`.
pub(crate) fn of_failure(code: Option<ErrorCode>, message: &str) -> Option<ErrorData> {
    (code == Some(ErrorCode::ToolNotFound)).then(|| ErrorData::invalid_params(message.to_owned(), None))
}
