//! Migrates a database to the newest version while other clients use it.
//!
//! A migration is a file of `migrations/`. An ordinary one runs in a transaction and waits for each
//! lock only briefly: a statement that waits for a table also blocks every later one, so behind a
//! long transaction a migration would block all work. Instead it gives up, lets the others
//! continue, and retries. A migration whose first line is `-- no-transaction` is a single statement
//! that must run alone, such as `CREATE INDEX CONCURRENTLY`. It can take as long as it needs, since
//! it blocks nothing.

mod index;
mod migration_lock;

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, SqlSafeStr as _};

use crate::database::failure;
use crate::database::open_error::{DatabaseRight, OpenError};

/// The migrations of the repository's `migrations/`.
pub static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let migrations = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));
    let one = |(number, name, sql, alone): (i64, &'static str, &'static str, bool)| {
        Migration::new(number, name.into(), MigrationType::Simple, sql.into_sql_str(), alone)
    };
    Migrator::with_migrations(migrations.into_iter().map(one).collect())
});

/// How long a statement of a migration waits for a lock, and so how long it can block others.
const LOCK_WAIT: Duration = Duration::from_secs(1);
/// The first pause between two attempts of a migration, for those that waited behind it.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The most attempts of one migration: about ten minutes.
const TRIES: u32 = 60;

/// Receives a sentence before each step that can take longer.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Applies the missing migrations as the user that `admin` names. If several processes do so at
/// once, one works and the others wait for it.
pub async fn migrate(admin: &PgConnectOptions, migrations: &Migrator, progress: Progress<'_>) -> Result<(), OpenError> {
    // Without timeouts: a migration can take long.
    let admin = admin.clone().options([("statement_timeout", "0"), ("idle_in_transaction_session_timeout", "0")]);
    let mut connection = admin.connect().await.map_err(|error| OpenError::connecting(&admin, &error))?;
    check_server(&mut connection).await?;
    migration_lock::acquire(&mut connection, progress).await.map_err(database)?;
    let applied = apply_missing(&mut connection, migrations, progress).await;
    // Closing the connection releases the lock. It can only fail if the connection is already gone.
    let _ = connection.close().await;
    applied
}

async fn check_server(connection: &mut PgConnection) -> Result<(), OpenError> {
    let number: String = sqlx::query_scalar("SHOW server_version_num")
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| OpenError::refused(&error))?;
    if number.parse::<u32>().unwrap_or(0) < 150_000 {
        let version: String = sqlx::query_scalar("SHOW server_version")
            .fetch_one(connection)
            .await
            .map_err(|error| OpenError::refused(&error))?;
        return Err(OpenError::TooOld(version));
    }
    Ok(())
}

async fn apply_missing(
    connection: &mut PgConnection,
    migrations: &Migrator,
    progress: Progress<'_>,
) -> Result<(), OpenError> {
    let table = &*migrations.table_name;
    connection.ensure_migrations_table(table).await.map_err(explain)?;
    let applied = connection.list_applied_migrations(table).await.map_err(explain)?;
    // The newest, which is the most useful to the operator.
    if let Some(unknown) = applied.iter().rev().find(|one| !migrations.version_exists(one.version)) {
        return Err(OpenError::Newer(unknown.version));
    }
    let present: HashSet<i64> = applied.iter().map(|one| one.version).collect();
    for one in &applied {
        if migrations.iter().any(|ours| ours.version == one.version && ours.checksum != one.checksum) {
            return Err(OpenError::Changed(one.version));
        }
    }
    for migration in migrations.iter().filter(|one| !present.contains(&one.version)) {
        progress(&format!("Applying migration {} ({})", migration.version, migration.description));
        apply(connection, table, migration, progress).await?;
    }
    Ok(())
}

/// Applies one migration, and retries while locks of others block it.
async fn apply(
    connection: &mut PgConnection,
    table: &str,
    migration: &Migration,
    progress: Progress<'_>,
) -> Result<(), OpenError> {
    // No limit for an index build: it waits for transactions, but blocks none.
    let wait = if migration.no_tx { Duration::ZERO } else { LOCK_WAIT };
    sqlx::query("SELECT set_config('lock_timeout', $1, false)")
        .bind(format!("{}ms", wait.as_millis()))
        .execute(&mut *connection)
        .await
        .map_err(database)?;
    let mut tries = 1;
    loop {
        if migration.no_tx {
            index::clear_half_built(connection, migration.sql.as_str()).await.map_err(database)?;
        }
        match connection.apply(table, migration).await {
            Ok(_) => return Ok(()),
            Err(error) if is_blocked(&error) && tries < TRIES => {
                if tries == 1 {
                    progress(&format!("Migration {} waits for a running transaction", migration.version));
                }
                tokio::time::sleep((PAUSE * tries).min(LONGEST_PAUSE)).await;
                tries += 1;
            }
            Err(error) => return Err(explain(error)),
        }
    }
}

/// Whether other transactions block the migration: a lock timeout, or a deadlock.
fn is_blocked(error: &MigrateError) -> bool {
    let (MigrateError::ExecuteMigration(source, _) | MigrateError::Execute(source)) = error else { return false };
    matches!(failure::code(source).as_deref(), Some("55P03" | "40P01"))
}

fn database(source: sqlx::Error) -> OpenError {
    explain(MigrateError::Execute(source))
}

/// Converts a failed migration to an error for the operator.
fn explain(error: MigrateError) -> OpenError {
    let (source, version) = match error {
        MigrateError::VersionMissing(version) => return OpenError::Newer(version),
        MigrateError::ExecuteMigration(source, version) => (source, Some(version)),
        MigrateError::Execute(source) => (source, None),
        other => return OpenError::Migrations(other),
    };
    let problem = failure::text(&source);
    match (failure::code(&source).as_deref(), version) {
        // The extension's files are not on the server.
        (Some("0A000" | "58P01"), Some(1)) => OpenError::NoPgvector,
        (Some("42501"), _) => OpenError::MissingPrivilege { right: DatabaseRight::lacking(&problem), problem },
        (Some("55P03" | "40P01"), Some(version)) => OpenError::LocksUnavailable { version, problem },
        _ if failure::is_unreachable(&source) => {
            OpenError::Unreachable { problem: format!("the connection to the database was lost: {problem}") }
        }
        (_, Some(version)) => OpenError::Migration { version, problem },
        (_, None) => OpenError::Database { problem },
    }
}
