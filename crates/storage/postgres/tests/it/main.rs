//! The private Postgres through its public API: real servers on real folders.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod data_folder;
mod lifecycle;
mod recovery;

use std::path::Path;

use rcrt_postgres::{Postgres, PostgresOptions, State};
use sqlx::{Connection, PgConnection};

fn options(data_dir: &Path) -> PostgresOptions {
    PostgresOptions { data_dir: data_dir.to_owned(), cache_dir: rcrt_postgres::default_cache_dir(), durable: false }
}

async fn start(data_dir: &Path) -> Postgres {
    rcrt_postgres::start(options(data_dir), &|_| {}).await.unwrap()
}

async fn connect(postgres: &Postgres) -> PgConnection {
    PgConnection::connect(&postgres.url(rcrt_postgres::SUPERUSER, rcrt_postgres::DATABASE)).await.unwrap()
}

fn pid(postgres: &Postgres) -> i32 {
    match *postgres.state().borrow() {
        State::Running { pid, .. } => i32::try_from(pid).unwrap(),
        other => panic!("not running: {other:?}"),
    }
}
