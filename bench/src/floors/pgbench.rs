//! The baseline for the disk: pgbench, from the same Postgres, inserts one row of a request's size
//! per transaction, as durably as the instance writes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use sqlx::{Executor, PgPool};
use tokio::process::Command;

use crate::instance::Database;

/// A database beside the instance's, in the same cluster.
const DATABASE: &str = "floor";
/// Bytes of a row of the baseline's table beside its text: header, id, time.
const BESIDE: i64 = 24 + 16 + 8 + 4;

/// pgbench, ready to insert.
pub struct PgBench {
    program: PathBuf,
    socket_dir: PathBuf,
    folder: PathBuf,
    script: PathBuf,
    /// Bytes of an inserted row, as Postgres stores it.
    pub row_bytes: i64,
}

/// The result of a run of inserts.
#[derive(Debug, Clone, Copy)]
pub struct Insert {
    pub per_second: f64,
    pub median: Duration,
}

impl PgBench {
    /// Creates a table for it in the cluster of an instance that has written requests before.
    /// `folder` is for its script and logs.
    pub async fn prepare(database: &Database, folder: &Path) -> anyhow::Result<Self> {
        let own = database.connect(rcrt_postgres::DATABASE, 1).await?;
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            let value: String = sqlx::query_scalar("SELECT current_setting($1)").bind(setting).fetch_one(&own).await?;
            if value != "on" {
                bail!("{setting} is {value}; it must be on, or the bench does not measure durable writes");
            }
        }
        let row_bytes = request_bytes(&own).await?;
        let there: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
            .bind(DATABASE)
            .fetch_one(&own)
            .await?;
        if !there {
            own.execute("CREATE DATABASE floor").await?;
        }
        own.close().await;
        let floor = database.connect(DATABASE, 1).await?;
        floor
            .execute(
                "CREATE TABLE IF NOT EXISTS record (id uuid PRIMARY KEY, at timestamptz NOT NULL, text text NOT NULL)",
            )
            .await?;
        floor.close().await;
        let text = "x".repeat(usize::try_from((row_bytes - BESIDE).max(1))?);
        let script = folder.join("insert.sql");
        let statement =
            format!("INSERT INTO record (id, at, text) VALUES (gen_random_uuid(), clock_timestamp(), '{text}');\n");
        std::fs::write(&script, statement)?;
        let (program, socket_dir) = (database.program("pgbench")?, database.socket_dir()?);
        Ok(Self { program, socket_dir, folder: folder.to_owned(), script, row_bytes })
    }

    /// Inserts from `clients` connections at once, each as fast as it gets responses.
    pub async fn insert(&self, clients: u32, time: Duration) -> anyhow::Result<Insert> {
        self.run(clients, time, None).await
    }

    /// Inserts from one connection at a fixed rate.
    pub async fn insert_at(&self, per_second: f64, time: Duration) -> anyhow::Result<Insert> {
        self.run(1, time, Some(per_second)).await
    }

    async fn run(&self, clients: u32, time: Duration, at: Option<f64>) -> anyhow::Result<Insert> {
        let log = self.folder.join(format!("pgbench-{clients}"));
        let seconds = time.as_secs().max(1);
        let output = Command::new(&self.program)
            .current_dir(&self.folder)
            .arg("--host")
            .arg(&self.socket_dir)
            .args(["--username", rcrt_postgres::SUPERUSER, "--no-vacuum", "--protocol", "prepared", "--log"])
            .arg(format!("--log-prefix={}", log.display()))
            .args(["--client", &clients.to_string(), "--jobs", &clients.min(2).to_string()])
            .args(at.map(|at| format!("--rate={at}")))
            .args(["--time", &seconds.to_string(), "--file"])
            .arg(&self.script)
            .arg(DATABASE)
            .kill_on_drop(true)
            .output()
            .await
            .context("pgbench cannot be started")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        let Some(per_second) = rate else {
            bail!("pgbench printed no rate: {}", String::from_utf8_lossy(&output.stderr).trim());
        };
        Ok(Insert { per_second, median: median(&self.folder, &format!("pgbench-{clients}."))? })
    }
}

/// The mean size of the requests that the instance has written, as Postgres stores them.
async fn request_bytes(own: &PgPool) -> anyhow::Result<i64> {
    let mean: Option<i64> = sqlx::query_scalar(
        "SELECT avg(pg_column_size(b.*))::bigint FROM breadcrumbs b WHERE schema_name = 'tool.request.v1'",
    )
    .fetch_one(own)
    .await?;
    mean.context("the instance has not written a request yet, so the size of one is unknown")
}

/// The median of the latencies in the logs whose names start with `beginning`. Removes these logs.
fn median(folder: &Path, beginning: &str) -> anyhow::Result<Duration> {
    let mut micros: Vec<u64> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(beginning) {
            continue;
        }
        // client, number, microseconds, script, seconds, microseconds. With a fixed rate also the
        // delay of the start in microseconds, which the first number of microseconds includes.
        let text = std::fs::read_to_string(entry.path())?;
        micros.extend(text.lines().filter_map(|line| {
            let number = |at| line.split(' ').nth(at)?.parse::<u64>().ok();
            Some(number(2)?.saturating_sub(number(6).unwrap_or_default()))
        }));
        std::fs::remove_file(entry.path())?;
    }
    micros.sort_unstable();
    let middle = micros.get(micros.len() / 2).context("pgbench logged nothing")?;
    Ok(Duration::from_micros(*middle))
}
