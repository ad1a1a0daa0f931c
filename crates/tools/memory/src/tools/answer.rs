//! The failures of a call.

use rcrt_breadcrumb::{StoreError, ToolFailure};
pub(super) use rcrt_executors::builtin::{failed, invalid, read_input as read};
use rcrt_executors::builtin::{refused, store_failed};
use rcrt_large_results::StoredResultError;

/// How many items to return: what the caller asked for, else `usual`; from 1 to `most`.
pub(super) fn limit(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, ToolFailure> {
    let limit = asked.unwrap_or(usual);
    if !(1..=most).contains(&limit) {
        return Err(invalid("limit", format!("must be from 1 to {most}")));
    }
    Ok(limit)
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
        error => store_failed(error),
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
