//! `rcrt backup`: the whole database as one file.

use std::path::PathBuf;

use ::rcrt_backup::Manifest;
use anyhow::{Context, bail};
use chrono::Utc;
use clap::Args;
use serde_json::json;

use crate::assembly::{DirectDatabase, check_url};
use crate::config::Config;
use crate::keys::{KeyFile, KeyKind, Keys};
use crate::output::Output;
use crate::progress::ConsoleProgress;

/// Write the whole database to one file, even while a server uses it
#[derive(Debug, Args)]
#[command(after_long_help = "\
The file contains the records, history, calls, events, agents and secrets of all tenants at one moment. Secrets are \
encrypted, as in the database. The key is not in the file: without it, secrets cannot be decrypted, and the file cannot \
be verified. Keep a copy of <data>/keys too, or write the keys to another file with --include-key, and store it apart \
from the backup.

Examples:
  rcrt backup backup-$(date +%F).rcrt
  rcrt backup nightly.rcrt --include-key nightly.keys
  rcrt backup nightly.rcrt --database-url postgres://rcrt@db/rcrt")]
pub struct Backup {
    /// The file to write; it must not exist
    file: PathBuf,
    /// Also write the keys of the secrets to this file, which only its owner can read
    #[arg(long, value_name = "FILE")]
    include_key: Option<PathBuf>,
    /// The database, if it is not the embedded one of the data folder
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

impl Backup {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        check_url(self.database_url.as_ref())?;
        let progress = ConsoleProgress::new();
        let direct = DirectDatabase::open(config, self.database_url.as_ref(), &progress).await?;
        let written = self.write(config, &direct, &progress).await;
        direct.close().await;
        progress.done();
        let (manifest, bytes) = written?;
        if output.is_json() {
            return output.json(&json!({"file": self.file, "bytes": bytes, "manifest": manifest}));
        }
        let Manifest { migration, postgres, .. } = &manifest;
        output.line(&format!(
            "{} written ({bytes} bytes, migration {migration}, Postgres {postgres})",
            self.file.display()
        ))?;
        if let Some(keys) = &self.include_key {
            output.line(&format!("{} written; anybody with both files can read every secret", keys.display()))?;
        }
        Ok(())
    }

    async fn write(
        &self,
        config: &Config,
        direct: &DirectDatabase,
        progress: &ConsoleProgress,
    ) -> anyhow::Result<(Manifest, u64)> {
        let ring = Keys::of(&config.data).ring(KeyKind::Secrets);
        if !ring.present().exists() {
            bail!(
                "a backup is authenticated with the key of the secrets, but {} does not exist; name the server's data \
                 folder with --data",
                ring.present().display()
            );
        }
        let Some((id, key)) = ring.load()?.into_iter().next() else { bail!("the folder of keys is empty") };
        let key = ::rcrt_backup::BackupKey::derive(id, &key)?;
        let programs = direct.programs(config, progress).await?;
        progress.step("Writing the backup");
        let facts =
            rcrt_store::backup_facts(&direct.admin_url).await.context("the database is not an RCRT database")?;
        let manifest = Manifest {
            format: Manifest::FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            migration: facts.migration,
            postgres: facts.postgres,
            made_at: Utc::now(),
            event_horizon: facts.event_horizon,
            secrets_keys: facts.secrets_keys,
            authenticated_by: Some(key.id().to_owned()),
        };
        let database = ::rcrt_backup::Database { url: direct.admin_url.clone(), programs };
        let bytes = ::rcrt_backup::write(&database, &manifest, &self.file, &key).await?;
        if let Some(file) = &self.include_key {
            KeyFile::of(&Keys::of(&config.data))?.write(file)?;
        }
        Ok((manifest, bytes))
    }
}
