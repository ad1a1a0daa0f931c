//! Why a store did not do what was asked.

use uuid::Uuid;

use crate::{EventNumber, MAX_DESCENDANTS, Violations};

/// Why an operation failed. After an error, nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Also returned for what belongs to another tenant or is not visible to the agent.
    #[error("no {what} with id {id}")]
    NotFound { what: &'static str, id: Uuid },
    #[error("the record is at version {actual}, not at {expected}; read it again and repeat the change")]
    VersionConflict { expected: i64, actual: i64 },
    #[error("{0}")]
    Invalid(Violations),
    #[error("this Idempotency-Key was used before with another body")]
    IdempotencyMismatch,
    /// The lease expired or was taken over, or the call is finished. Stop working on it.
    #[error("the lease on request {request} is lost")]
    LeaseLost { request: Uuid },
    /// The token is missing, expired or forged.
    #[error("{0}")]
    Unauthorized(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("the input is too large: at most {limit} bytes are accepted")]
    TooLarge { limit: usize },
    /// The next events are no longer stored. From number `first` on, none is missing.
    #[error("events were missed, because events are stored for some days only; continue from number {first}")]
    EventsMissed { first: EventNumber },
    /// The tenant's quota is used up. `quota` is `records`, `bytes`, `tools`, `tool_bytes` or
    /// `tool_creations`; or [`DESCENDANTS`], the limit of the calls below one call.
    #[error("{}", used_up(quota, *limit, *used))]
    QuotaExceeded { quota: String, limit: u64, used: u64 },
    /// The agent has this many queued calls. The same request can succeed when some of them ended.
    #[error("{limit} calls of this agent are queued, which is the most; wait for some of them, or cancel them")]
    QueueFull { limit: u64 },
    /// A secret is encrypted under a key that the server does not have. Only its operator can help.
    #[error("{0}")]
    SecretKeyMissing(String),
    /// The database is out of disk space.
    #[error("the store is out of disk space; nothing was written")]
    Full,
    /// Not now, although the store can be reached: a limit of work at once is reached, such as the
    /// tenant's share of the connections, or a model does not respond. The text names it. The same
    /// operation can succeed later.
    #[error("{0}")]
    Busy(String),
    /// The database or the server cannot be reached. A retry can help.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// A bug or an unexpected failure. The text is for the log, not for callers.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The quota that a request of a call exceeds if its tree has [`MAX_DESCENDANTS`] calls.
pub const DESCENDANTS: &str = "descendants";

impl StoreError {
    pub fn too_many_descendants() -> Self {
        Self::QuotaExceeded { quota: DESCENDANTS.to_owned(), limit: MAX_DESCENDANTS, used: MAX_DESCENDANTS }
    }

    /// Whether the same operation can succeed later without a change.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::QueueFull { .. } | Self::Busy(_) | Self::Unavailable(_) | Self::Full)
    }
}

/// How the operator sets a quota.
const BY: &str = "`rcrt tenant set`";

fn used_up(quota: &str, limit: u64, used: u64) -> String {
    let of = |what: &str| format!("the tenant's quota of {limit} {what} is used up ({used} are stored)");
    match quota {
        DESCENDANTS => format!(
            "{limit} calls have been made below the call that an agent requested, which is the most (limit \
             {DESCENDANTS}); make fewer calls, or let the agent request some of them"
        ),
        "tool_creations" => format!(
            "the agent has created {used} tools within an hour, and the tenant's quota is {limit}; update a tool instead of \
             creating another, or wait"
        ),
        "tools" => format!("{}; delete a tool that is not needed, or ask the operator for more ({BY})", of("tools")),
        "tool_bytes" => {
            format!("{}; delete or shorten a tool, or ask the operator for more ({BY})", of("bytes of tools"))
        }
        quota => format!(
            "{}; delete what is not needed, or ask the operator for more ({BY}). Old versions and deleted records count \
             towards bytes for a while",
            of(quota)
        ),
    }
}

impl From<Violations> for StoreError {
    fn from(violations: Violations) -> Self {
        Self::Invalid(violations)
    }
}
