//! Errors of the store as errors of the protocol.

use rcrt_a2a_types::{A2aError, ErrorKind};
use rcrt_breadcrumb::StoreError;

/// The error that a caller gets. Causes that are not for callers are logged here.
pub fn from_store(error: StoreError) -> A2aError {
    let text = error.to_string();
    match error {
        StoreError::NotFound { id, .. } => A2aError::task_not_found(&id.to_string()),
        StoreError::Invalid(found) => A2aError {
            kind: ErrorKind::InvalidParams,
            message: text,
            violations: found.0.into_iter().map(|one| (one.field, one.message)).collect(),
        },
        StoreError::VersionConflict { .. } | StoreError::IdempotencyMismatch | StoreError::LeaseLost { .. } => {
            A2aError::new(ErrorKind::InvalidRequest, text)
        }
        StoreError::TooLarge { .. } => A2aError::new(ErrorKind::InvalidParams, text),
        StoreError::Unauthorized(_) | StoreError::Forbidden(_) => A2aError::new(ErrorKind::PermissionDenied, text),
        StoreError::QuotaExceeded { .. } | StoreError::QueueFull { .. } => {
            A2aError::new(ErrorKind::ResourceExhausted, text)
        }
        StoreError::EventsMissed { .. } => {
            A2aError::new(ErrorKind::Unavailable, "updates were missed; read the task and subscribe again")
        }
        StoreError::Busy(_) => A2aError::new(ErrorKind::Unavailable, text),
        StoreError::Unavailable(cause) => {
            tracing::warn!(cause, "the store cannot be reached");
            A2aError::new(ErrorKind::Unavailable, "the store cannot be reached now; try again")
        }
        StoreError::Full => {
            tracing::error!("the store is out of disk space");
            A2aError::new(ErrorKind::Unavailable, text)
        }
        StoreError::SecretKeyMissing(cause) | StoreError::Internal(cause) => {
            tracing::error!(cause, "internal error");
            A2aError::new(ErrorKind::Internal, "the server failed; its log has the cause")
        }
    }
}
