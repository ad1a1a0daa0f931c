//! Converts the database's errors to the store's, in one place.

use std::borrow::Cow;

use breadcrumb::{StoreError, Violations};

/// Why a piece of work in the store failed: our own refusal, or the database's.
#[derive(Debug)]
pub(crate) enum Failure {
    Store(StoreError),
    Database(sqlx::Error),
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Violations> for Failure {
    fn from(violations: Violations) -> Self {
        Self::Store(StoreError::Invalid(violations))
    }
}

impl Failure {
    /// Two transactions were in each other's way and the database undid this one: the same again can succeed.
    pub(crate) fn is_collision(&self) -> bool {
        matches!(self, Self::Database(error) if matches!(code(error).as_deref(), Some("40001" | "40P01")))
    }

    /// The caller cannot see the record.
    pub(crate) fn misses_record(&self, record: uuid::Uuid) -> bool {
        matches!(self, Self::Store(StoreError::NotFound { what: "breadcrumb", id }) if *id == record)
    }

    /// The database cannot be reached: what else is asked of it now will not fare better.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Database(error) if is_unreachable(error))
    }

    /// The statement waited too long, for a lock or for itself.
    pub(crate) fn ran_out_of_time(&self) -> bool {
        matches!(self, Self::Database(error) if matches!(code(error).as_deref(), Some("57014" | "55P03")))
    }

    /// The database refused a second row of the same key, under this constraint.
    pub(crate) fn violates(&self, constraint: &str) -> bool {
        matches!(self, Self::Database(sqlx::Error::Database(error)) if error.constraint() == Some(constraint))
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error,
            Failure::Database(error) => from_database(&error),
        }
    }
}

/// Whether the connection is gone, or none can be had, so that nothing is known about the statement.
pub(crate) fn is_unreachable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // Connection failures, shutdowns and start-ups, and too many connections; and a connection that cannot be used
        // because of the transaction that it is, or was for too long, in.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            code.starts_with("08") || code.starts_with("57P") || code.starts_with("25") || code == "53300"
        }),
        _ => false,
    }
}

pub(crate) fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).map(Cow::into_owned)
}

fn from_database(error: &sqlx::Error) -> StoreError {
    if matches!(error, sqlx::Error::PoolTimedOut) {
        return StoreError::Unavailable("no database connection came free in time".into());
    }
    if is_unreachable(error) {
        tracing::warn!(%error, "the database cannot be reached");
        return StoreError::Unavailable("the database does not answer".into());
    }
    match code(error).as_deref() {
        Some("53100") => StoreError::Full,
        // A text that Postgres cannot keep; a JSON that it cannot convert.
        Some("22021" | "22P05") => {
            StoreError::Invalid(Violations::one("", "contains a character that cannot be stored, such as NUL (U+0000)"))
        }
        // Out of memory, statement timeout, lock timeout: worth another try.
        Some("53200" | "57014" | "55P03" | "40001" | "40P01") => {
            tracing::warn!(%error, "the database gave up on a statement");
            StoreError::Unavailable("the database was too busy".into())
        }
        _ => StoreError::Internal(error.to_string()),
    }
}

/// Runs a piece of work again while it collides with others, a few times.
macro_rules! retrying {
    ($work:expr) => {{
        let mut attempts = 0;
        loop {
            match $work.await {
                Err(failure) if $crate::failure::Failure::is_collision(&failure) && attempts < 5 => attempts += 1,
                other => break other.map_err(breadcrumb::StoreError::from),
            }
        }
    }};
}
pub(crate) use retrying;
