//! Restores: the event numbers of a restored database continue where they were.

use rcrt_breadcrumb::StoreError;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use url::Url;
use uuid::Uuid;

use crate::database::failure::Result;
use crate::secrets::UnreadableSecret;

/// The low bits of an event number that follow its transaction; see `migrations/0004_events.sql`.
const ORDINAL_BITS: u32 = 12;

/// Facts about this database that its backup must include.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFacts {
    /// The newest migration.
    pub migration: i64,
    /// The server's version.
    pub postgres: String,
    /// Every event below this number is committed.
    pub event_horizon: i64,
    /// The ids of the keys that encrypt its secrets.
    pub secrets_keys: Vec<String>,
}

/// Call this before the backup begins: the backup then has every event below the horizon.
/// `admin_url`: of the tables' owner.
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
        Ok::<_, crate::database::failure::Failure>(BackupFacts { migration, postgres, event_horizon, secrets_keys })
    };
    Ok(asked.await?)
}

/// The unprivileged user that owns a restored database if a superuser restores it.
pub const RESTORED_OWNER: &str = "rcrt_owner";

/// Whether a superuser restored a backup on this server, so that [`RESTORED_OWNER`] owns the
/// tables.
pub async fn has_restored_owner(admin_url: &str) -> Result<bool, sqlx::Error> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let has = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)")
        .bind(RESTORED_OWNER)
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    Ok(has)
}

/// Whether the database has no tables.
pub async fn is_empty(url: &str) -> Result<bool, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let tables: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    Ok(tables == 0)
}

/// Deletes the secrets that are encrypted under other keys than these, and returns them.
pub async fn delete_unreadable_secrets(
    admin_url: &str,
    key_ids: &[String],
) -> Result<Vec<UnreadableSecret>, sqlx::Error> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let mut deleted = Vec::new();
    for lost in [
        "DELETE FROM secrets WHERE key_id <> ALL ($1) RETURNING id, name, key_id",
        "DELETE FROM webhook_secrets WHERE key_id <> ALL ($1) RETURNING agent_id AS id, '' AS name, key_id",
    ] {
        let rows: Vec<UnreadableSecret> = sqlx::query_as(lost).bind(key_ids).fetch_all(&mut connection).await?;
        deleted.extend(rows);
    }
    connection.close().await?;
    Ok(deleted)
}

/// Deletes everything in a database, and prepares it for a restore. Returns the URL of the user
/// that loads the backup.
///
/// A backup's archive defines functions and triggers, and so code that runs when tables are written
/// to. A superuser must not run it. If `admin_url` names one, the returned URL is of an
/// unprivileged user ([`RESTORED_OWNER`]), who owns what is restored from then on. On our own
/// server (`is_ours`) the socket needs no password.
pub async fn empty_for_restore(admin_url: &str, is_ours: bool) -> Result<String, StoreError> {
    Ok(empty(admin_url, is_ours).await?)
}

async fn empty(admin_url: &str, is_ours: bool) -> Result<String> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let is_superuser: bool = sqlx::query_scalar("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        .fetch_one(&mut connection)
        .await?;
    if !is_superuser {
        sqlx::raw_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")
            .execute(&mut connection)
            .await?;
        let _ = connection.close().await;
        return Ok(admin_url.to_owned());
    }
    let password = random_password();
    sqlx::raw_sql(AssertSqlSafe(format!(
        "DO $$
         BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{RESTORED_OWNER}') THEN
                CREATE ROLE {RESTORED_OWNER};
            END IF;
         EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
         END
         $$;
         ALTER ROLE {RESTORED_OWNER} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION;
         ALTER ROLE {RESTORED_OWNER} RESET ALL;
         GRANT rcrt_app TO {RESTORED_OWNER};
         DROP SCHEMA public CASCADE;
         CREATE SCHEMA public AUTHORIZATION {RESTORED_OWNER};
         GRANT USAGE ON SCHEMA public TO PUBLIC;
         CREATE EXTENSION vector WITH SCHEMA public"
    )))
    .execute(&mut connection)
    .await?;
    if !is_ours {
        sqlx::raw_sql(AssertSqlSafe(format!("ALTER ROLE {RESTORED_OWNER} PASSWORD '{password}'")))
            .execute(&mut connection)
            .await?;
    }
    let _ = connection.close().await;
    let mut url =
        Url::parse(admin_url).map_err(|_| StoreError::Internal("the database's address is not a valid URL".into()))?;
    let no_user = |()| StoreError::Internal("the database's address cannot have a user".into());
    url.set_username(RESTORED_OWNER).map_err(no_user)?;
    url.set_password((!is_ours).then_some(password.as_str())).map_err(no_user)?;
    Ok(url.into())
}

/// Disables the login of the restored database's owner. Call it after a restore on a server that is
/// not ours.
pub async fn close_restored_owner(admin_url: &str) -> Result<(), StoreError> {
    let asked = async {
        let mut connection = PgConnection::connect(admin_url).await?;
        sqlx::raw_sql(AssertSqlSafe(format!("ALTER ROLE {RESTORED_OWNER} NOLOGIN PASSWORD NULL")))
            .execute(&mut connection)
            .await?;
        let _ = connection.close().await;
        Ok::<_, crate::database::failure::Failure>(())
    };
    Ok(asked.await?)
}

/// Only letters and digits, so that it needs no quoting.
fn random_password() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// Makes the event numbers of a restored database continue above all that were handed out before,
/// up to `horizon`, even in a cluster that has counted fewer transactions. The numbers in between
/// belong to events that the restore undid. A subscriber that names one of them gets an error. Also
/// chooses the compression that this server has.
pub async fn continue_event_numbers(admin_url: &str, horizon: i64) -> Result<(), StoreError> {
    Ok(move_event_base(admin_url, horizon).await?)
}

async fn move_event_base(admin_url: &str, horizon: i64) -> Result<()> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let mut tx = connection.begin().await?;
    // The backup may also have events at and above the horizon, which was read before it.
    let (newest, given, present): (i64, i64, i64) = sqlx::query_as(
        "SELECT GREATEST((SELECT max(number) FROM events), (SELECT max(number) FROM shared_events), 0),
            (SELECT coalesce(max(next_number), 0) FROM restores), pg_current_xact_id()::text::bigint",
    )
    .fetch_one(&mut *tx)
    .await?;
    let used = (newest.max(given).max(horizon) >> ORDINAL_BITS) + 1;
    // The next multiple of 2^32: numbers that were handed out after the backup and lost are below
    // it.
    let first = ((used >> 32) + 1) << 32;
    let base = (first - present).max(0);
    let function = format!(
        "DELETE FROM event_bases;
         CREATE OR REPLACE FUNCTION event_base(transaction bigint) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
            RETURN {base}::bigint"
    );
    sqlx::raw_sql(AssertSqlSafe(function)).execute(&mut *tx).await?;
    // Not from the horizon: in a cluster that went back to a moment, transactions since then can
    // have the ids of those that were lost.
    sqlx::query("INSERT INTO restores (last_number, next_number) VALUES ($1, $2)")
        .bind(newest)
        .bind((present + base) << ORDINAL_BITS)
        .execute(&mut *tx)
        .await?;
    sqlx::query("SELECT choose_compression()").execute(&mut *tx).await?;
    tx.commit().await?;
    let _ = connection.close().await;
    Ok(())
}
