//! Why a store did not open.

use sqlx::migrate::MigrateError;
use sqlx::postgres::PgConnectOptions;

use super::failure;

/// Where an operator finds the statements for a database user.
const SECTION: &str = "the section \"A Postgres of your own\" of docs/operations.md has all statements";

/// Why a store did not open. The messages are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the database URL is invalid: {0}")]
    Url(#[source] sqlx::Error),
    #[error("{problem}")]
    Unreachable { problem: String },
    #[error("this database server is Postgres {0}; 15 or later is needed")]
    TooOld(String),
    #[error(
        "this database server has no pgvector: install the extension \"vector\" there (Debian: \
         postgresql-<version>-pgvector)"
    )]
    NoPgvector,
    #[error("the database user cannot {} ({problem}); {}. {SECTION}", right.what(), right.fix())]
    MissingPrivilege { right: DatabaseRight, problem: String },
    #[error(
        "the database has migration {0}, which this program does not know: it was migrated by a newer version, or \
         created by a development version from before the first release. Such a database must be created again"
    )]
    Newer(i64),
    #[error(
        "migration {0} of the database is not that of this program: a development version from before the first \
         release made it. Export the records with that version (`rcrt export`), and import them into a new database"
    )]
    Changed(i64),
    #[error("migration {version} failed: {problem}")]
    Migration { version: i64, problem: String },
    #[error("migration {version} did not get the locks it needs, because a long transaction holds them: {problem}")]
    LocksUnavailable { version: i64, problem: String },
    #[error("the migrations cannot be applied: {0}")]
    Migrations(#[source] MigrateError),
    #[error(
        "the role rcrt_app and the user of the app URL must not be superusers, have BYPASSRLS or own tables: row-level \
         security would have no effect"
    )]
    RoleTooStrong,
    #[error("the database refused a statement while opening: {problem}")]
    Database { problem: String },
}

/// A right that the database user needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseRight {
    Extension,
    Role,
    Schema,
}

impl DatabaseRight {
    /// The right that a statement lacked. Postgres' texts can be translated, names are not.
    pub(crate) fn lacking(problem: &str) -> Self {
        if problem.contains("vector") {
            Self::Extension
        } else if problem.contains("public") {
            Self::Schema
        } else {
            Self::Role
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Extension => "create the extension vector",
            Self::Role => "set up or take the role rcrt_app",
            Self::Schema => "create tables in the schema public",
        }
    }

    fn fix(self) -> &'static str {
        match self {
            Self::Extension => "a superuser must run CREATE EXTENSION vector in this database",
            Self::Role => "a superuser must run CREATE ROLE rcrt_app and GRANT rcrt_app TO the user WITH ADMIN OPTION",
            Self::Schema => "make the user the owner of the database, or run GRANT CREATE ON SCHEMA public TO the user",
        }
    }
}

impl OpenError {
    /// Why no connection was made, with host and port.
    pub(crate) fn connecting(options: &PgConnectOptions, error: &sqlx::Error) -> Self {
        let host =
            options.get_socket().map_or_else(|| options.get_host().to_owned(), |socket| socket.display().to_string());
        let place = format!("{host}:{}", options.get_port());
        let (user, text) = (options.get_username(), failure::text(error));
        // Without a name in the URL, Postgres takes the user's.
        let database = options.get_database().unwrap_or(user);
        let problem = match (failure::code(error).as_deref(), error) {
            (Some("3D000"), _) => {
                format!(
                    "the Postgres at {place} has no database {database:?}; create it, or correct the URL ({SECTION})"
                )
            }
            (Some("28000"), _) if text.contains("does not exist") => {
                format!("the Postgres at {place} has no user {user:?}; create it, or correct the URL ({SECTION})")
            }
            (Some("28000" | "28P01"), _) => {
                format!("the Postgres at {place} refuses the user {user:?}: {text}; check user and password of the URL")
            }
            (Some("42501"), _) => format!("the user {user:?} cannot use the database {database:?} at {place}: {text}"),
            (Some(_), _) => format!("the Postgres at {place} refuses the connection: {text}"),
            (None, sqlx::Error::Io(cause)) if cause.kind() == std::io::ErrorKind::ConnectionRefused => {
                format!("no Postgres accepts connections at {place}; start it, or correct host and port of the URL")
            }
            (None, _) => format!("the Postgres at {place} cannot be reached: {text}"),
        };
        Self::Unreachable { problem }
    }

    pub(crate) fn refused(error: &sqlx::Error) -> Self {
        Self::Database { problem: failure::text(error) }
    }
}
