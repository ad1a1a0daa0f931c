//! How a native tool reports invalid arguments.

use rcrt_breadcrumb::{ErrorCode, ToolFailure, Violations};
use serde_json::json;

/// `InvalidArguments` with each violation: in the message, and in the details as `{"violations":
/// [{field, message}]}`.
pub fn refused(violations: &Violations) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidArguments, violations.to_string())
        .with_details(json!({"violations": violations.0}))
}
