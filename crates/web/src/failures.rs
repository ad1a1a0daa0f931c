//! Failures, as the caller sees them.

use breadcrumb::{ErrorCode, ToolFailure};
use sandbox::OpError;

pub(crate) fn invalid(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidArguments, message)
}

pub(crate) fn failed(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
}

/// The gate's refusals stay; a network error may mend itself, a chain of redirects does not.
pub(crate) fn from_egress_error(error: OpError) -> ToolFailure {
    match error.name.as_str() {
        "PermissionDenied" => ToolFailure::new(ErrorCode::PermissionDenied, error.message),
        "ResourceExhausted" => ToolFailure::new(ErrorCode::ResourceExhausted, error.message),
        _ => {
            let may_mend = !error.message.contains(" redirect");
            failed(error.message).retryable(may_mend)
        }
    }
}

/// A service's refusal: its status in the details, and whether it may be another one later.
pub(crate) fn from_http_status(message: impl Into<String>, status: u16) -> ToolFailure {
    failed(message)
        .with_details(serde_json::json!({ "http_status": status }))
        .retryable(matches!(status, 408 | 425 | 429 | 500..))
}
