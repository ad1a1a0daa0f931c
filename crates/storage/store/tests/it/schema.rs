//! What must hold for every table, read from the catalogs.

use rcrt_breadcrumb::{EventKind, Profile, Role};
use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

/// Tables that belong to no tenant. The role has no rights on them, except to read the models.
pub const SHARED: [&str; 13] = [
    "_sqlx_migrations",
    "cell_home",
    "cell_identity",
    "cells",
    "embedding_models",
    "event_bases",
    "event_ranges",
    "fenced_tenants",
    "follower_leases",
    "restores",
    "retention",
    "tenant_cells",
    "tenants",
];

/// Partitioning by tenant and a distributed Postgres need the tenant in each key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_starts_with_the_tenant() {
    let database = TestDatabase::new().await;
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    // An agent's id is unique over all tenants, since another tenant's grant names it.
    let mut expected = [&SHARED[..], &["agents"]].concat();
    expected.sort_unstable();
    let global: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class
         WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname = ANY ($1) ORDER BY relname",
    )
    .bind(&expected)
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert_eq!(global, expected);
    // The rows of `shared_events` are read by another tenant than their owner.
    let unique: Vec<String> = sqlx::query_scalar(
        "SELECT concat(c.relname, ': ', i.indexrelid::regclass)
         FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
         LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
         WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace AND c.relname <> ALL ($1)
            AND a.attname IS DISTINCT FROM CASE c.relname WHEN 'shared_events' THEN 'grantee_owner_id'
                ELSE 'owner_id' END",
    )
    .bind(&expected)
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
    .bind(&expected)
    .fetch_all(&mut admin)
    .await
    .unwrap();
    assert!(foreign.is_empty(), "foreign keys that do not carry owner_id: {foreign:?}");
}

/// A new role, profile or kind of event needs its name in the CHECKs too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_accept_only_the_names_of_the_code() {
    let database = TestDatabase::new().await;
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    let owner = Uuid::new_v4();
    sqlx::query("INSERT INTO tenants (id, name) VALUES ($1, 'a')").bind(owner).execute(&mut admin).await.unwrap();
    let all: Vec<&str> = Role::ALL.map(Role::as_str).to_vec();
    for statement in [
        "INSERT INTO agents (owner_id, id, name, key_hash, roles, profile) VALUES ($1, $2, $2::text, '', $3, $4)",
        "INSERT INTO tokens (owner_id, id, agent_id, issued_at, expires_at, roles, profile)
         VALUES ($1, $2, $2, now(), now(), $3, $4)",
    ] {
        let mut cases: Vec<(Vec<&str>, &str, bool)> =
            Profile::ALL.iter().map(|profile| (all.clone(), profile.as_str(), true)).collect();
        cases.extend([(vec!["curator", "admin"], "main", false), (vec!["curator"], "root", false)]);
        for (roles, profile, is_accepted) in cases {
            let query = sqlx::query(statement).bind(owner).bind(Uuid::new_v4()).bind(&roles).bind(profile);
            assert_eq!(is_written(query.execute(&mut admin).await), is_accepted, "{roles:?} {profile} in {statement}");
        }
    }
    for table in ["events (owner_id", "shared_events (grantee_owner_id, owner_id"] {
        let values = if table.starts_with("shared") { "$1, $1" } else { "$1" };
        let statement = format!(
            "INSERT INTO {table}, number, breadcrumb_id, version, at, size_bytes, kind)
             VALUES ({values}, $2, $1, 1, now(), 0, $3)"
        );
        let kinds = [EventKind::Created, EventKind::Updated, EventKind::Deleted].map(|kind| (kind.as_str(), true));
        for (number, (kind, is_accepted)) in (1_i64..).zip(kinds.into_iter().chain([("breadcrumb.read", false)])) {
            let query = sqlx::query(sqlx::AssertSqlSafe(statement.clone())).bind(owner).bind(number).bind(kind);
            assert_eq!(is_written(query.execute(&mut admin).await), is_accepted, "{kind} in {table}");
        }
    }
}

/// `false` if a CHECK refused it.
fn is_written(result: Result<sqlx::postgres::PgQueryResult, sqlx::Error>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.as_database_error().unwrap().code().unwrap(), "23514", "{error}");
            false
        }
    }
}
