//! The directory in the first cell's database.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgConnection, PgPool, Postgres, Transaction};
use uuid::Uuid;

/// What the directory says of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) tenant: Uuid,
    pub(crate) cell: String,
    pub(crate) moving_to: Option<String>,
    pub(crate) moved_from: Option<String>,
    pub(crate) version: i64,
}

type Row = (Uuid, String, Option<String>, Option<String>, i64);

impl From<Row> for Entry {
    fn from((tenant, cell, moving_to, moved_from, version): Row) -> Self {
        Self { tenant, cell, moving_to, moved_from, version }
    }
}

pub(crate) fn pool(admin_url: &str, connections: u32) -> Result<PgPool, sqlx::Error> {
    let options = PgConnectOptions::from_str(admin_url)?;
    let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(Duration::from_secs(5));
    Ok(pool.connect_lazy_with(options))
}

/// The names and URLs of the cells besides the first.
pub(crate) async fn cells(directory: &PgPool) -> Result<Vec<(String, String)>, sqlx::Error> {
    sqlx::query_as("SELECT name, url FROM cells ORDER BY name").fetch_all(directory).await
}

/// The cell in which new tenants begin.
pub(crate) async fn default_cell(directory: &PgPool) -> Result<String, sqlx::Error> {
    sqlx::query_scalar("SELECT new_tenants FROM cell_home").fetch_one(directory).await
}

/// Takes the lock of the tenant's moves, which the end of the connection releases too. False if it
/// is taken.
pub(crate) async fn lock_moves(home: &mut PgConnection, tenant: Uuid) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtextextended('rcrt.cell_move ' || $1::text, 0))")
        .bind(tenant)
        .fetch_one(home)
        .await
}

/// Releases it at once: a server notices the end of a connection later.
pub(crate) async fn unlock_moves(home: &mut PgConnection, tenant: Uuid) {
    let unlock = sqlx::query("SELECT pg_advisory_unlock(hashtextextended('rcrt.cell_move ' || $1::text, 0))");
    let _ = unlock.bind(tenant).execute(home).await;
}

/// A transaction that keeps moves of the tenant away until it ends. `None` while one runs.
pub(crate) async fn without_moves(
    directory: &PgPool,
    tenant: Uuid,
) -> Result<Option<Transaction<'static, Postgres>>, sqlx::Error> {
    let mut held = directory.begin().await?;
    // The lock of `lock_moves`.
    let lock = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended('rcrt.cell_move ' || $1::text, 0))";
    let is_held: bool = sqlx::query_scalar(lock).bind(tenant).fetch_one(&mut *held).await?;
    Ok(is_held.then_some(held))
}

/// The entries that changed after this version, in the order of their change.
pub(crate) async fn changes(directory: &PgPool, after: i64) -> Result<Vec<Entry>, sqlx::Error> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT tenant, cell, moving_to, moved_from, version FROM tenant_cells WHERE version > $1 ORDER BY version",
    )
    .bind(after)
    .fetch_all(directory)
    .await?;
    Ok(rows.into_iter().map(Entry::from).collect())
}

pub(crate) async fn entry(home: &mut PgConnection, tenant: Uuid) -> Result<Option<Entry>, sqlx::Error> {
    let row: Option<Row> =
        sqlx::query_as("SELECT tenant, cell, moving_to, moved_from, version FROM tenant_cells WHERE tenant = $1")
            .bind(tenant)
            .fetch_optional(home)
            .await?;
    Ok(row.map(Entry::from))
}

/// Writes a tenant's entry. Versions are committed in their order, so that no server misses one:
/// one writer at a time.
pub(crate) async fn write(
    home: &mut PgConnection,
    tenant: Uuid,
    cell: &str,
    moving_to: Option<&str>,
    moved_from: Option<&str>,
) -> Result<(), sqlx::Error> {
    let mut tx = sqlx::Connection::begin(home).await?;
    write_in(&mut tx, tenant, cell, moving_to, moved_from).await?;
    tx.commit().await
}

/// Lets a new tenant begin in another cell than the first, which refuses its writes from then on.
pub(crate) async fn place(directory: &PgPool, tenant: Uuid, cell: &str) -> Result<(), sqlx::Error> {
    let mut tx = directory.begin().await?;
    write_in(&mut tx, tenant, cell, None, None).await?;
    sqlx::query("INSERT INTO fenced_tenants VALUES ($1) ON CONFLICT DO NOTHING").bind(tenant).execute(&mut *tx).await?;
    tx.commit().await
}

async fn write_in(
    tx: &mut PgConnection,
    tenant: Uuid,
    cell: &str,
    moving_to: Option<&str>,
    moved_from: Option<&str>,
) -> Result<(), sqlx::Error> {
    sqlx::query("LOCK TABLE tenant_cells IN SHARE ROW EXCLUSIVE MODE").execute(&mut *tx).await?;
    sqlx::query(
        "INSERT INTO tenant_cells AS c (tenant, cell, moving_to, moved_from, version)
         SELECT $1, $2, $3, $4, coalesce(max(version), 0) + 1 FROM tenant_cells
         ON CONFLICT (tenant) DO UPDATE SET cell = EXCLUDED.cell, moving_to = EXCLUDED.moving_to,
             moved_from = EXCLUDED.moved_from, version = EXCLUDED.version",
    )
    .bind(tenant)
    .bind(cell)
    .bind(moving_to)
    .bind(moved_from)
    .execute(tx)
    .await?;
    Ok(())
}
