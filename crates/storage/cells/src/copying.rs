//! The rows of one tenant: copied to another cell, and deleted where they are no longer used. The
//! tables come from the catalog, so a new table needs nothing here.

use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

/// The rows that one transaction deletes.
const PURGED_AT_ONCE: i32 = 5_000;

/// What a tenant's new cell does not get: `runners` report again within a second; embeddings are
/// computed again, because each cell numbers its models itself; events of other tenants' records.
const NOT_COPIED: &[&str] =
    &["runners", "shared_events", "breadcrumb_embeddings", "embedding_queue", "embedding_backfills"];

/// The name, the columns that are written, and the column whose values come from a sequence.
type Table = (String, String, Option<String>);

/// Copies all rows of the tenant, and returns how many. Nobody else writes them meanwhile, and the
/// target has none. The caller begins and commits the target's transaction.
pub(crate) async fn copy(
    source: &mut PgConnection,
    target: &mut PgConnection,
    tenant: Uuid,
) -> Result<u64, sqlx::Error> {
    let tables: Vec<Table> = sqlx::query_as(
        "SELECT c.relname::text AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns,
            min(quote_ident(a.attname)) FILTER (WHERE a.attidentity <> '') AS counted
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND a.attgenerated = ''
         WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
            AND c.relname <> ALL ($1) AND (c.relname = 'tenants' OR EXISTS (
                SELECT FROM pg_attribute o WHERE o.attrelid = c.oid AND o.attname = 'owner_id' AND NOT o.attisdropped))
         GROUP BY c.oid, c.relname
         -- What others reference comes first; `tenants` before all.
         ORDER BY c.relname <> 'tenants', (SELECT count(*) FROM pg_constraint k
            WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.confrelid <> 'public.tenants'::regclass), c.relname",
    )
    .bind(NOT_COPIED)
    .fetch_all(&mut *source)
    .await?;
    // At home the tenant's row is there already.
    sqlx::query("DELETE FROM tenants WHERE id = $1").bind(tenant).execute(&mut *target).await?;
    let mut rows = 0;
    for table in &tables {
        rows += copy_table(source, target, table, tenant).await?;
    }
    Ok(rows)
}

async fn copy_table(
    source: &mut PgConnection,
    target: &mut PgConnection,
    table: &Table,
    tenant: Uuid,
) -> Result<u64, sqlx::Error> {
    let (name, columns, counted) = table;
    // Names are from the catalog, and a UUID has only hexadecimal digits and hyphens.
    let condition = match name.as_str() {
        "tenants" => format!("id = '{tenant}'"),
        // Without its cursor, the follower begins by embedding all records.
        "event_cursors" => format!("owner_id = '{tenant}' AND follower <> 'embeddings'"),
        _ => format!("owner_id = '{tenant}'"),
    };
    let statement = format!("COPY (SELECT {columns} FROM public.{name} WHERE {condition}) TO STDOUT (FORMAT binary)");
    let mut rows = source.copy_out_raw(&statement).await?;
    let mut sink = target.copy_in_raw(&format!("COPY public.{name} ({columns}) FROM STDIN (FORMAT binary)")).await?;
    loop {
        match rows.try_next().await {
            Ok(Some(bytes)) => {
                sink.send(bytes).await?;
            }
            Ok(None) => break,
            Err(error) => {
                // The transaction is rolled back in any case.
                let _ = sink.abort("the source failed").await;
                return Err(error);
            }
        }
    }
    drop(rows);
    let copied = sink.finish().await?;
    if let Some(counted) = counted.as_ref().filter(|_| copied > 0) {
        advance_sequence(target, name, counted, tenant).await?;
    }
    Ok(copied)
}

/// The next number of the sequence is above the copied ones. The distance is for numbers that
/// others take between the question and the change.
async fn advance_sequence(
    target: &mut PgConnection,
    table: &str,
    column: &str,
    tenant: Uuid,
) -> Result<(), sqlx::Error> {
    let sequence: String = sqlx::query_scalar("SELECT pg_get_serial_sequence('public.' || $1, $2)")
        .bind(table)
        .bind(column)
        .fetch_one(&mut *target)
        .await?;
    let statement = format!(
        "SELECT setval('{sequence}', c.newest + 1000) FROM (
            SELECT max({column}) AS newest FROM public.{table} WHERE owner_id = $1) c
         WHERE c.newest >= (SELECT last_value FROM {sequence})"
    );
    sqlx::query(AssertSqlSafe(statement)).bind(tenant).execute(&mut *target).await?;
    Ok(())
}

/// Deletes all rows of a tenant in a database where it is not, in small transactions. At home its
/// row in `tenants` stays.
pub(crate) async fn purge(connection: &mut PgConnection, tenant: Uuid, is_home: bool) -> Result<(), sqlx::Error> {
    loop {
        let gone: i64 = sqlx::query_scalar("SELECT purge_rows($1, $2)")
            .bind(tenant)
            .bind(PURGED_AT_ONCE)
            .fetch_one(&mut *connection)
            .await?;
        if gone == 0 {
            break;
        }
    }
    for rest in ["DELETE FROM audit WHERE owner_id = $1", "DELETE FROM agents WHERE owner_id = $1"] {
        sqlx::query(rest).bind(tenant).execute(&mut *connection).await?;
    }
    if !is_home {
        sqlx::query("DELETE FROM tenants WHERE id = $1").bind(tenant).execute(connection).await?;
    }
    Ok(())
}
