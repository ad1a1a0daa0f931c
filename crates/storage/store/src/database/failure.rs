//! Converts the database's errors to the store's, in one place.

use std::borrow::Cow;

use rcrt_breadcrumb::{StoreError, Violations};

/// Why work in the store failed: an error of the store, or of the database.
#[derive(Debug)]
pub(crate) enum Failure {
    Store(StoreError),
    Database(sqlx::Error),
}

/// The code of `refuse_fenced_tenant`.
const FENCED: &str = "RC001";

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
    /// An event of a kind that this version does not know, which its table does not permit.
    pub(crate) fn unknown_event_kind(number: i64, kind: &str) -> Self {
        Self::Store(StoreError::Internal(format!("event {number} is of the unknown kind {kind}")))
    }

    /// The database rolled this transaction back because of a conflict with another. A repetition
    /// can succeed.
    pub(crate) fn is_collision(&self) -> bool {
        matches!(self, Self::Database(error) if matches!(code(error).as_deref(), Some("40001" | "40P01")))
    }

    /// Whether it says that this record was not found.
    pub(crate) fn misses_record(&self, record: uuid::Uuid) -> bool {
        matches!(self, Self::Store(StoreError::NotFound { what: "breadcrumb", id }) if *id == record)
    }

    /// The database cannot be reached, so other statements would fail too.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Database(error) if is_unreachable(error))
    }

    /// The statement ran into a lock timeout or a statement timeout.
    pub(crate) fn ran_out_of_time(&self) -> bool {
        matches!(self, Self::Database(error) if matches!(code(error).as_deref(), Some("57014" | "55P03")))
    }

    /// The tenant is in another database, or on the way there (`refuse_fenced_tenant`).
    pub(crate) fn is_fenced(&self) -> bool {
        matches!(self, Self::Database(error) if code(error).as_deref() == Some(FENCED))
    }

    /// The row violates this unique or foreign key constraint.
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

/// Whether the connection is lost or none is available, so that the outcome of the statement is
/// unknown.
pub(crate) fn is_unreachable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // Connection failures, shutdowns, startups, and too many connections; also a connection
        // that cannot be used because of the transaction it is in, or was in for too long.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            code.starts_with("08") || code.starts_with("57P") || code.starts_with("25") || code == "53300"
        }),
        _ => false,
    }
}

pub(crate) fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).map(Cow::into_owned)
}

/// The error's text, without the line in the source code of Postgres.
pub(crate) fn text(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

fn from_database(error: &sqlx::Error) -> StoreError {
    if matches!(error, sqlx::Error::PoolTimedOut) {
        return StoreError::Unavailable("no database connection became free in time".into());
    }
    if is_unreachable(error) {
        tracing::warn!(%error, "the database cannot be reached");
        return StoreError::Unavailable("the database does not respond".into());
    }
    match code(error).as_deref() {
        Some("53100") => StoreError::Full,
        Some(FENCED) => {
            StoreError::Unavailable("the tenant is being moved to another database; try again in a second".into())
        }
        // Text that Postgres cannot store, or JSON that it cannot convert.
        Some("22021" | "22P05") => {
            StoreError::Invalid(Violations::one("", "contains a character that cannot be stored, such as NUL (U+0000)"))
        }
        // Out of memory, statement timeout, lock timeout: worth a retry.
        Some("53200" | "57014" | "55P03" | "40001" | "40P01") => {
            tracing::warn!(%error, "the database cancelled a statement");
            StoreError::Unavailable("the database is too busy; try again later".into())
        }
        _ => StoreError::Internal(text(error)),
    }
}

/// Repeats the work a few times if it conflicts with other transactions.
macro_rules! retrying {
    ($work:expr) => {{
        let mut attempts = 0;
        loop {
            match $work.await {
                Err(failure) if $crate::database::failure::Failure::is_collision(&failure) && attempts < 5 => {
                    attempts += 1
                }
                other => break other.map_err(rcrt_breadcrumb::StoreError::from),
            }
        }
    }};
}
pub(crate) use retrying;
