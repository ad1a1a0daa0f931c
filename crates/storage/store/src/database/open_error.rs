//! Why a store did not open.

use sqlx::migrate::MigrateError;

/// Why a store did not open. The messages are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the database URL is invalid: {0}")]
    Url(#[source] sqlx::Error),
    #[error("the database cannot be reached: {0}")]
    Unreachable(#[source] sqlx::Error),
    #[error("this database server is Postgres {0}; 15 or later is needed")]
    TooOld(String),
    #[error(
        "this database server has no pgvector: install the extension \"vector\" there (Debian: \
         postgresql-<version>-pgvector)"
    )]
    NoPgvector,
    #[error("the database user cannot {what}: {source}")]
    MissingPrivilege { what: &'static str, source: sqlx::Error },
    #[error(
        "the database has migration {0}, which this program does not know: it was migrated by a newer version, or \
         created by a development version from before the first release. Such a database must be created again"
    )]
    Newer(i64),
    #[error("migration {version} failed: {source}")]
    Migration { version: i64, source: sqlx::Error },
    #[error("migration {version} did not get the locks it needs, because a long transaction holds them: {source}")]
    LocksUnavailable { version: i64, source: sqlx::Error },
    #[error("the migrations cannot be applied: {0}")]
    Migrations(#[source] MigrateError),
    #[error(
        "the role rcrt_app and the user of the app URL must not be superusers, have BYPASSRLS or own tables: row-level \
         security would have no effect"
    )]
    RoleTooStrong,
    #[error("the database refused a statement while opening: {0}")]
    Database(#[source] sqlx::Error),
}
