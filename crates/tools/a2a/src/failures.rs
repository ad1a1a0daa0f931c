//! Failures, as callers see them.

use rcrt_breadcrumb::{ErrorCode, StoreError, ToolFailure, Violations};
use rcrt_executors::builtin::{refused, store_failed};

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

pub(crate) fn from_store(error: &StoreError) -> ToolFailure {
    store_failed(error, "a tool for agents")
}
