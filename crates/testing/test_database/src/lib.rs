//! A new, migrated database for each test. For tests only.
//!
//! The first test of a process starts a private Postgres and migrates a template database with the
//! SQL in `/migrations`. Every test gets a copy of the template in a few milliseconds. Nothing has
//! to be started beforehand. Nothing is left behind, even when the test process is killed.
//!
//! It deliberately does not know the store: the store's own tests use it.
#![allow(clippy::expect_used)] // Without a database a test cannot run, so it panics.

mod cleanup;
mod cluster;
mod template;

use std::sync::atomic::{AtomicU64, Ordering};

pub use cluster::put_cluster_for;
use rcrt_postgres::Postgres;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};

/// The role that the server works as. Row-level security applies to it.
const APP_ROLE: &str = "rcrt_app";

/// A database for one test. It is removed when the process exits.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    /// As the superuser: owns the tables, sees every tenant's rows.
    pub admin_url: String,
    /// As the unprivileged role, logged in directly.
    pub app_url: String,
    /// Its name on the server.
    pub name: String,
}

struct Server {
    postgres: Postgres,
    /// Postgres copies a template only while no client is connected to it. One copy at a time is
    /// fastest.
    turn: Mutex<()>,
    _folder: TempDir,
}

static SERVER: OnceCell<Server> = OnceCell::const_new();
static NUMBER: AtomicU64 = AtomicU64::new(1);

impl TestDatabase {
    /// A copy of the migrated template.
    pub async fn new() -> Self {
        Self::create(template::NAME).await
    }

    /// An empty database, for tests of the migrations themselves.
    pub async fn empty() -> Self {
        Self::create("template0").await
    }

    /// The server of this process's test databases, for tests that kill it or need its programs.
    pub async fn server() -> &'static Postgres {
        &SERVER.get_or_init(start).await.postgres
    }

    /// Runs SQL in this database, as the superuser.
    pub async fn execute(&self, sql: &str) {
        run(&self.admin_url, sql).await;
    }

    /// Waits until no connection of this database is in a transaction.
    pub async fn no_transaction_is_open(&self) {
        let mut admin = PgConnection::connect(&self.admin_url).await.expect("a connection to the test server");
        let count = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()";
        while sqlx::query_scalar::<_, i64>(count).fetch_one(&mut admin).await.expect("the count of transactions") > 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn create(template: &str) -> Self {
        let server = SERVER.get_or_init(start).await;
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let _turn = server.turn.lock().await;
        execute(&server.postgres, &format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY wal_log")).await;
        Self {
            admin_url: server.postgres.url(rcrt_postgres::SUPERUSER, &name),
            app_url: server.postgres.url(APP_ROLE, &name),
            name,
        }
    }
}

async fn start() -> Server {
    let (postgres, folder) = cluster::start().await;
    template::build(&postgres).await;
    Server { postgres, turn: Mutex::new(()), _folder: folder }
}

/// One statement, as the superuser, outside of any test's database.
async fn execute(postgres: &Postgres, statement: &str) {
    run(&postgres.url(rcrt_postgres::SUPERUSER, "postgres"), statement).await;
}

async fn run(url: &str, sql: &str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection to the test server");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("the statement to succeed");
    connection.close().await.expect("the connection to close");
}
