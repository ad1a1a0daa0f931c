//! Migrations on a database that other clients use.

use std::str::FromStr;
use std::sync::Arc;

use rcrt_conformance::harness::PATIENCE;
use rcrt_store::{OpenError, migrate};
use rcrt_test_database::TestDatabase;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqlSafeStr};
use tokio::sync::Notify;

/// Migrations with these texts, as the build creates them from files.
fn migrations(texts: &[&'static str]) -> Migrator {
    let one = |(number, sql): (i64, &&'static str)| {
        let alone = sql.starts_with("-- no-transaction");
        Migration::new(number, "one".into(), MigrationType::Simple, sql.into_sql_str(), alone)
    };
    Migrator::with_migrations((1..).zip(texts).map(one).collect())
}

async fn run(database: &TestDatabase, texts: &[&'static str]) -> Result<(), OpenError> {
    migrate(&PgConnectOptions::from_str(&database.admin_url).unwrap(), &migrations(texts), &|_| {}).await
}

/// Runs them in a separate task until it reports that it waits.
async fn run_until_it_waits(
    database: &TestDatabase,
    texts: &'static [&'static str],
) -> tokio::task::JoinHandle<Result<(), OpenError>> {
    let waits = Arc::new(Notify::new());
    let (url, notify) = (database.admin_url.clone(), waits.clone());
    let running = tokio::spawn(async move {
        let options = PgConnectOptions::from_str(&url).unwrap();
        let progress = |text: &str| {
            if text.to_lowercase().contains("wait") {
                notify.notify_one();
            }
        };
        migrate(&options, &migrations(texts), &progress).await
    });
    tokio::time::timeout(PATIENCE, waits.notified()).await.expect("it waits");
    running
}

async fn execute(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
}

async fn is_valid(connection: &mut PgConnection, index: &str) -> Option<bool> {
    sqlx::query_scalar("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)")
        .bind(index)
        .fetch_optional(connection)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_index_build_is_repeated() {
    let database = TestDatabase::empty().await;
    let texts = [
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (1)",
        "-- no-transaction\n-- One of each.\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS t_a ON t (a)",
    ];
    let failed = run(&database, &texts).await.unwrap_err();
    assert!(matches!(failed, OpenError::Migration { version: 2, .. }), "{failed}");
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    assert_eq!(is_valid(&mut admin, "t_a").await, Some(false), "the failed build left an invalid index");

    execute(&mut admin, "DELETE FROM t; INSERT INTO t VALUES (1), (2)").await;
    run(&database, &texts).await.unwrap();
    assert_eq!(is_valid(&mut admin, "t_a").await, Some(true));
    let applied: Vec<i64> = sqlx::query_scalar("SELECT version FROM _sqlx_migrations ORDER BY version")
        .fetch_all(&mut admin)
        .await
        .unwrap();
    assert_eq!(applied, [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_behind_a_long_transaction_does_not_block_others() {
    const TEXTS: &[&str] = &["CREATE TABLE t (a int)", "ALTER TABLE t ADD COLUMN b int"];
    let database = TestDatabase::empty().await;
    run(&database, &TEXTS[..1]).await.unwrap();
    let mut long = PgConnection::connect(&database.admin_url).await.unwrap();
    execute(&mut long, "BEGIN; SELECT FROM t").await;

    let migrating = run_until_it_waits(&database, TEXTS).await;
    let mut other = PgConnection::connect(&database.admin_url).await.unwrap();
    execute(&mut other, "SET statement_timeout = '20s'").await;
    for _ in 0..20 {
        execute(&mut other, "INSERT INTO t VALUES (1)").await;
    }
    assert!(!migrating.is_finished());
    execute(&mut long, "ROLLBACK").await;
    tokio::time::timeout(PATIENCE, migrating).await.expect("it continues").unwrap().unwrap();
    execute(&mut other, "SELECT b FROM t").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_migrator_does_not_block_an_index_build() {
    const TEXTS: &[&str] = &["CREATE TABLE t (a int)", "CREATE TABLE u (a int)"];
    let database = TestDatabase::empty().await;
    run(&database, &TEXTS[..1]).await.unwrap();
    let mut first = PgConnection::connect(&database.admin_url).await.unwrap();
    execute(&mut first, "SELECT pg_advisory_lock(hashtext('rcrt.migrate'))").await;

    let second = run_until_it_waits(&database, TEXTS).await;
    execute(&mut first, "SET statement_timeout = '30s'").await;
    execute(&mut first, "CREATE INDEX CONCURRENTLY t_a ON t (a)").await;
    assert!(!second.is_finished(), "it waits until the first one is done");
    first.close().await.unwrap();
    tokio::time::timeout(PATIENCE, second).await.expect("it continues").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_was_changed_after_it_was_applied_is_refused() {
    let database = TestDatabase::empty().await;
    run(&database, &["CREATE TABLE t (a int)"]).await.unwrap();
    let refused = run(&database, &["CREATE TABLE t (a bigint)"]).await.unwrap_err();
    assert!(matches!(refused, OpenError::Changed(1)), "{refused}");
}
