//! What a store has spent: processor time by kind of process, and what its database has counted.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use nix::unistd::{SysconfVar, sysconf};

use super::processes::{Runner, Server};
use crate::house::tree;

/// Spent since the processes began.
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
        let (mut own, mut postgres) = (Duration::ZERO, Duration::ZERO);
        for process in tree(server.process_id())? {
            let Some(spent) = Spent::of(process) else { continue };
            if spent.program == "postgres" { postgres += spent.time } else { own += spent.time }
        }
        let working = tree(runner.process_id())?.into_iter().filter_map(Spent::of).map(|spent| spent.time).sum();
        let database = server.database().connect(postgres::DATABASE, 1).await?;
        let (transactions, log_bytes, kept_bytes): (i64, i64, i64) = sqlx::query_as(
            "SELECT d.xact_commit, (w.wal_bytes)::bigint, pg_database_size(d.datname)
             FROM pg_stat_database d, pg_stat_wal w WHERE d.datname = current_database()",
        )
        .fetch_one(&database)
        .await
        .context("the database's own counts")?;
        database.close().await;
        Ok(Self { server: own, postgres, runner: working, transactions, log_bytes, kept_bytes })
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

/// What one process has spent, with its children that have ended.
struct Spent {
    program: String,
    time: Duration,
}

impl Spent {
    /// None of one that has just ended.
    fn of(process: u32) -> Option<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    fn read(stat: &str) -> Option<Self> {
        // The program's name stands in brackets and may hold anything.
        let (before, rest) = stat.rsplit_once(") ")?;
        let program = before.split_once(" (")?.1.to_owned();
        // user, system, and both of the children that were waited for
        let ticks: u64 = rest.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
        let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten()?;
        Some(Self { program, time: Duration::from_secs_f64(ticks as f64 / per_second as f64) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_process_are_read_whatever_its_name() {
        let line = "77 (a (b) c) S 1 77 77 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5 6 7";
        let spent = Spent::read(line).unwrap();
        assert_eq!(spent.program, "a (b) c");
        let per_second = sysconf(SysconfVar::CLK_TCK).unwrap().unwrap();
        assert!((spent.time.as_secs_f64() - 100.0 / per_second as f64).abs() < 1e-9);
    }
}
