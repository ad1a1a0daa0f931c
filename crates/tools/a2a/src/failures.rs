//! Failures, as callers see them.

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
pub(crate) use rcrt_executors::builtin::{failed, invalid, store_failed};

pub(crate) fn denied(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(ErrorCode::PermissionDenied, message)
}
