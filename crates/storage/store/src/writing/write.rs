//! One write, and its outcome.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{ErrorCode, Lease};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::outcome::ResponseOutcome;
use super::prepared::PreparedRecord;
use crate::database::failure::Result;

/// One write: it happens as a whole or not at all.
pub(crate) enum WriteOp {
    Create(PreparedRecord),
    Start {
        lease: Lease,
        max_attempts: i32,
    },
    /// Finishes the lease's call with this record.
    Complete {
        lease: Lease,
        response: PreparedRecord,
        /// Whether it is the tool's result. Then it counts as an attempt, even without a start.
        is_attempt: bool,
    },
}

/// A call's part of a write. Without a response, it is a start.
pub(crate) struct CallStep {
    pub(crate) lease: Lease,
    /// For a start, the tool's maximum. For a response, 0 if it counts as an attempt, otherwise
    /// `None`.
    pub(crate) attempts: Option<i32>,
    pub(crate) response: Option<Uuid>,
    pub(crate) error_code: Option<ErrorCode>,
    /// How long the tool ran, in microseconds. `None` if it did not run.
    pub(crate) run_us: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// When the record was created; `None` for a start, and if it was deleted since.
    Written(Option<DateTime<Utc>>),
    /// The record's key is taken, or the lease is lost. Nothing was written.
    Refused,
}

/// A queued write, and the channel to its caller.
pub(super) struct PendingWrite {
    pub(super) work: WriteOp,
    pub(super) reply: oneshot::Sender<Result<WriteOutcome>>,
}

impl WriteOp {
    pub(super) fn record(&self) -> Option<&PreparedRecord> {
        match self {
            Self::Create(record) | Self::Complete { response: record, .. } => Some(record),
            Self::Start { .. } => None,
        }
    }

    pub(super) fn into_record(self) -> Option<PreparedRecord> {
        match self {
            Self::Create(record) | Self::Complete { response: record, .. } => Some(record),
            Self::Start { .. } => None,
        }
    }

    pub(super) fn step(&self) -> Option<CallStep> {
        match self {
            Self::Create(_) => None,
            Self::Start { lease, max_attempts } => Some(CallStep {
                lease: *lease,
                attempts: Some(*max_attempts),
                response: None,
                error_code: None,
                run_us: None,
            }),
            Self::Complete { lease, response, is_attempt } => {
                let outcome = ResponseOutcome::of(&response.record);
                Some(CallStep {
                    lease: *lease,
                    attempts: is_attempt.then_some(0),
                    response: Some(response.id),
                    error_code: outcome.error_code,
                    run_us: outcome.run_us,
                })
            }
        }
    }

    /// The id of this write in the batch's result: the record's, or for a start the request's.
    pub(super) fn receipt_id(&self) -> Uuid {
        match self {
            Self::Create(record) | Self::Complete { response: record, .. } => record.id,
            Self::Start { lease, .. } => lease.request,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.record().map_or(64, PreparedRecord::bytes)
    }
}
