//! The Postgres server around the store's database: what it is, and the store's role on it.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection};

use super::from_row::from_row;

/// Returns the version of Postgres, and of pgvector if it is installed or can be installed in the
/// database.
pub async fn server_version(url: &str) -> Result<(String, Option<String>), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let version: String = sqlx::query_scalar("SHOW server_version").fetch_one(&mut connection).await?;
    let vector = sqlx::query_scalar(
        "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),
                         (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'))",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    // Packagers add text after the number.
    Ok((version.split_whitespace().next().unwrap_or_default().to_owned(), vector))
}

/// Creates the store's role if needed, which the migrations have not done in a new cluster. With
/// `can_log_in` it logs in without a password: only for a server whose socket only the owner can
/// reach.
pub async fn create_app_role(admin_url: &str, can_log_in: bool) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(admin_url).await?;
    sqlx::raw_sql(
        "DO $$
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rcrt_app') THEN
                CREATE ROLE rcrt_app NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
            END IF;
        END
        $$",
    )
    .execute(&mut connection)
    .await?;
    if can_log_in {
        sqlx::raw_sql("ALTER ROLE rcrt_app LOGIN").execute(&mut connection).await?;
    }
    connection.close().await
}

from_row! {
    /// How much of a kind is stored.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredSize {
        pub kind: String,
        pub entries: i64,
        pub bytes: i64,
        /// Whether the bytes are those on disk, with indexes. Otherwise they are those of contexts.
        pub is_on_disk: bool,
    }
}

/// What is stored in a database of the store.
pub async fn stored_sizes(url: &str) -> Result<Vec<StoredSize>, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let sizes = sqlx::query_as("SELECT * FROM public.stored_sizes()").fetch_all(&mut connection).await;
    let _ = connection.close().await;
    sizes
}

from_row! {
    struct ActivityRow {
        connections: i64,
        max_connections: i64,
        waiting_for_locks: i64,
        longest_transaction_s: f64,
        archives: bool,
        archived_at: Option<DateTime<Utc>>,
        archive_failed_at: Option<DateTime<Utc>>,
    }
}

/// What a database does at this moment, for an operator who looks for the cause of a problem.
/// Without the right to see the sessions of other users, locks and transactions are those of the
/// user of the URL.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseActivity {
    /// The time of one trivial query, without that of the connection.
    pub round_trip: Duration,
    pub connections: i64,
    pub max_connections: i64,
    /// Sessions that wait for a lock of another one.
    pub waiting_for_locks: i64,
    /// Seconds since the oldest open transaction began.
    pub longest_transaction_s: f64,
    /// Whether the server archives its write-ahead log.
    pub archives: bool,
    pub archived_at: Option<DateTime<Utc>>,
    /// The last failure, which can be older than the last success.
    pub archive_failed_at: Option<DateTime<Utc>>,
    /// The newest migration that was applied; `None` if there is none.
    pub schema: Option<i64>,
}

/// Reads what the database at this URL does now.
pub async fn database_activity(url: &str) -> Result<DatabaseActivity, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let begun = Instant::now();
    sqlx::query("SELECT 1").execute(&mut connection).await?;
    let round_trip = begun.elapsed();
    let row: ActivityRow = sqlx::query_as(
        "SELECT count(*) AS connections, current_setting('max_connections')::bigint AS max_connections,
            count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting_for_locks,
            coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)
                FILTER (WHERE pid <> pg_backend_pid())), 0)::float8 AS longest_transaction_s,
            current_setting('archive_mode') <> 'off' AS archives,
            (SELECT last_archived_time FROM pg_stat_archiver) AS archived_at,
            (SELECT last_failed_time FROM pg_stat_archiver) AS archive_failed_at
         FROM pg_stat_activity WHERE backend_type = 'client backend' OR pid = pg_backend_pid()",
    )
    .fetch_one(&mut connection)
    .await?;
    let schema = sqlx::query_scalar("SELECT public.schema_version()");
    let schema = schema.fetch_one(&mut connection).await.unwrap_or_default();
    let _ = connection.close().await;
    Ok(DatabaseActivity {
        round_trip,
        connections: row.connections,
        max_connections: row.max_connections,
        waiting_for_locks: row.waiting_for_locks,
        longest_transaction_s: row.longest_transaction_s,
        archives: row.archives,
        archived_at: row.archived_at,
        archive_failed_at: row.archive_failed_at,
        schema,
    })
}
