//! Failures, as callers see them.

use rcrt_breadcrumb::{ErrorCode, OpError, ToolFailure};
pub(crate) use rcrt_executors::builtin::failed;

pub(crate) fn invalid(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidArguments, message)
}

/// The gate's refusals are permanent. A network error can be temporary, a chain of redirects is
/// not.
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

/// The refusal of a service, with its status in the details. The status decides whether a retry can
/// succeed.
pub(crate) fn from_http_status(message: impl Into<String>, status: u16) -> ToolFailure {
    failed(message)
        .with_details(serde_json::json!({ "http_status": status }))
        .retryable(matches!(status, 408 | 425 | 429 | 500..))
}
