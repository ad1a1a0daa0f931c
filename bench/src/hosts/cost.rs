//! What a store has used: processor time by kind of process, and the counters of its database.

use std::time::Duration;

use anyhow::Context;

use super::processes::{Runner, Server};
use crate::instance::CpuTime;

/// Used since the processes started.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    pub server: Duration,
    pub postgres: Duration,
    pub runner: Duration,
    pub transactions: i64,
    pub log_bytes: i64,
    pub kept_bytes: i64,
}

impl Costs {
    pub async fn now(server: &Server, runner: &Runner) -> anyhow::Result<Self> {
        let serving = CpuTime::of(server.process_id())?;
        let running = CpuTime::of(runner.process_id())?;
        let database = server.database().connect(rcrt_postgres::DATABASE, 1).await?;
        let (transactions, log_bytes, kept_bytes): (i64, i64, i64) = sqlx::query_as(
            "SELECT d.xact_commit, (w.wal_bytes)::bigint, pg_database_size(d.datname)
             FROM pg_stat_database d, pg_stat_wal w WHERE d.datname = current_database()",
        )
        .fetch_one(&database)
        .await
        .context("the database's own counters")?;
        database.close().await;
        let (own, working) = (serving.server + serving.workers, running.server + running.workers);
        Ok(Self { server: own, postgres: serving.postgres, runner: working, transactions, log_bytes, kept_bytes })
    }

    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            server: self.server.saturating_sub(before.server),
            postgres: self.postgres.saturating_sub(before.postgres),
            runner: self.runner.saturating_sub(before.runner),
            transactions: self.transactions - before.transactions,
            log_bytes: self.log_bytes - before.log_bytes,
            kept_bytes: self.kept_bytes - before.kept_bytes,
        }
    }
}
