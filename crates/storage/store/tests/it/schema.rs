//! What must hold for every table, read from the catalogs.

use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};

/// Tables of no tenant, and `agents`: an agent's id is unique over all tenants, since another
/// tenant's grant names it.
const GLOBAL: &[&str] = &["_sqlx_migrations", "agents", "embedding_models", "follower_leases", "restores", "tenants"];

/// Partitioning by tenant and a distributed Postgres need the tenant in each key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_starts_with_the_tenant() {
    let database = TestDatabase::new().await;
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    let global: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class
         WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname = ANY ($1) ORDER BY relname",
    )
    .bind(GLOBAL)
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert_eq!(global, GLOBAL);
    // The rows of `shared_events` are read by another tenant than their owner.
    let unique: Vec<String> = sqlx::query_scalar(
        "SELECT concat(c.relname, ': ', i.indexrelid::regclass)
         FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
         LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
         WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace AND c.relname <> ALL ($1)
            AND a.attname IS DISTINCT FROM CASE c.relname WHEN 'shared_events' THEN 'grantee_owner_id'
                ELSE 'owner_id' END",
    )
    .bind(GLOBAL)
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert!(unique.is_empty(), "unique indexes that do not start with owner_id: {unique:?}");
    let foreign: Vec<String> = sqlx::query_scalar(
        "SELECT concat(c.relname, ': ', k.conname)
         FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class f ON f.oid = k.confrelid
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
         JOIN pg_attribute b ON b.attrelid = f.oid AND b.attnum = k.confkey[1]
         WHERE k.contype = 'f' AND f.relname <> ALL ($1) AND (a.attname <> 'owner_id' OR b.attname <> 'owner_id')",
    )
    .bind(GLOBAL)
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert!(foreign.is_empty(), "foreign keys that do not carry owner_id: {foreign:?}");
}
