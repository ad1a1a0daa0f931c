//! What the store adds to a restored database: its events' numbers go on where they were.

use breadcrumb::StoreError;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::failure::Done;

/// A number's transaction; see `migrations/0003_events.sql`.
const ORDINAL_BITS: u32 = 12;

/// What a backup of this database must say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFacts {
    /// The newest migration.
    pub migration: i64,
    /// The server's version.
    pub postgres: String,
    /// Every event below this number is committed.
    pub event_horizon: i64,
    /// The ids of the keys that its secrets are sealed under.
    pub secrets_keys: Vec<String>,
}

/// Asked before the backup begins: what was below the horizon then is in it. `admin_url`: of the tables' owner.
pub async fn backup_facts(admin_url: &str) -> Result<BackupFacts, StoreError> {
    let asked = async {
        let mut connection = PgConnection::connect(admin_url).await?;
        let (migration, postgres, event_horizon, secrets_keys) = sqlx::query_as(
            "SELECT (SELECT max(version) FROM _sqlx_migrations), split_part(current_setting('server_version'), ' ', 1),
                event_horizon(), ARRAY(SELECT key_id FROM secrets UNION SELECT key_id FROM webhook_secrets ORDER BY key_id)",
        )
        .fetch_one(&mut connection)
        .await?;
        let _ = connection.close().await;
        Done::Ok(BackupFacts { migration, postgres, event_horizon, secrets_keys })
    };
    Ok(asked.await?)
}

/// Makes the numbers of a restored database's events go on above all that were given out before, as far as `horizon`
/// tells, also in a cluster that has counted fewer transactions. Between the two lies what a restore has undone; who
/// names a number from there hears of it.
pub async fn count_events_on(admin_url: &str, horizon: i64) -> Result<(), StoreError> {
    Ok(count_on(admin_url, horizon).await?)
}

async fn count_on(admin_url: &str, horizon: i64) -> Done<()> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let mut tx = connection.begin().await?;
    // Events at and above the horizon may be in the backup too: it is of a moment after the one in which that was asked.
    let (newest, given, present): (i64, i64, i64) = sqlx::query_as(
        "SELECT GREATEST((SELECT max(number) FROM events), (SELECT max(number) FROM shared_events), 0),
            (SELECT coalesce(max(next_number), 0) FROM restores), pg_current_xact_id()::text::bigint",
    )
    .fetch_one(&mut *tx)
    .await?;
    let used = (newest.max(given).max(horizon) >> ORDINAL_BITS) + 1;
    // The next round of 32 bits: what was counted after the backup, and was lost, lies before it.
    let first = ((used >> 32) + 1) << 32;
    let base = (first - present).max(0);
    let function = format!(
        "CREATE OR REPLACE FUNCTION event_base() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN {base}::bigint"
    );
    sqlx::raw_sql(AssertSqlSafe(function)).execute(&mut *tx).await?;
    sqlx::query("INSERT INTO restores (last_number, next_number) VALUES ($1, $2)")
        .bind(newest.max(horizon - 1))
        .bind((present + base) << ORDINAL_BITS)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    let _ = connection.close().await;
    Ok(())
}
