//! `rcrt migrate`: brings a database to the schema of this program, before servers start on it.

use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use rcrt_store::MIGRATOR;
use serde_json::json;
use sqlx::postgres::PgConnectOptions;

use crate::assembly::{DirectDatabase, check_url};
use crate::config::Config;
use crate::output::Output;
use crate::progress::ConsoleProgress;

/// Migrate the database to the schema of this version, and end
#[derive(Debug, Args)]
#[command(after_long_help = "\
A server does the same at its start. This command is for a step before the servers of a new version start. Running \
servers of the version before continue to work. It changes nothing if the schema is up to date, and fails if a newer \
version has migrated the database.

Examples:
  rcrt migrate --database-url postgres://rcrt@db/rcrt
  rcrt migrate --data /var/lib/rcrt")]
pub struct Migrate {
    /// The database, if it is not the embedded one of the data folder
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

impl Migrate {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        check_url(self.database_url.as_ref())?;
        let progress = ConsoleProgress::new();
        let database = DirectDatabase::open(config, self.database_url.as_ref(), &progress).await?;
        let migrated = migrate(&database.admin_url, &progress).await;
        database.close().await;
        migrated?;
        progress.done();
        let newest = MIGRATOR.iter().map(|one| one.version).max().unwrap_or_default();
        output.either(&json!({"schema": newest}), &format!("the schema is up to date (migration {newest})"))
    }
}

async fn migrate(admin_url: &str, progress: &ConsoleProgress) -> anyhow::Result<()> {
    let admin = PgConnectOptions::from_str(admin_url).context("the database's URL cannot be read")?;
    let say = |step: &str| progress.step(step);
    Box::pin(rcrt_store::migrate(&admin, &MIGRATOR, &say)).await.context("the database cannot be migrated")
}
