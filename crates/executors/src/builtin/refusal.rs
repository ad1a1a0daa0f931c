//! How a native tool reports invalid arguments.

use breadcrumb::{ErrorCode, ToolFailure, Violations};
use serde_json::json;

/// `InvalidArguments` that name each violation: in the sentence, and in the details as `{"violations": [{field, message}]}`.
pub fn refused(violations: &Violations) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidArguments, violations.to_string())
        .with_details(json!({"violations": violations.0}))
}
