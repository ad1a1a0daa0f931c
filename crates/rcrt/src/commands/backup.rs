//! `rcrt backup`: the whole database as one file.

use std::path::PathBuf;

use ::backup::Manifest;
use anyhow::{Context, bail};
use chrono::Utc;
use clap::Args;
use serde_json::json;

use crate::assembly::{DirectDatabase, check_url};
use crate::config::Config;
use crate::exit::Failure;
use crate::keys::{KeyFile, KeyKind, Keys};
use crate::output::Output;
use crate::progress::ConsoleProgress;

/// Write the whole database to one file, also while a server works on it
#[derive(Debug, Args)]
#[command(after_long_help = "\
The file holds every tenant's records, history, calls, events, agents and secrets, as they were at one moment. Secrets \
are encrypted in it as they are in the database; the key is not in the file, and without the key they are lost. The file \
is authenticated under the same key, and restore wants it. Keep <data>/keys elsewhere too, or let --include-key write the keys to a file of their own, and keep that apart from the backup.

Examples:
  rcrt backup nightly.rcrt
  rcrt backup nightly.rcrt --include-key nightly.keys
  rcrt backup nightly.rcrt --database-url postgres://rcrt@db/rcrt")]
pub struct Backup {
    /// The file to write; it must not be there yet
    file: PathBuf,
    /// Also write the keys of the secrets to this file, which only its owner may read
    #[arg(long, value_name = "FILE")]
    include_key: Option<PathBuf>,
    /// The database, where it is not the data folder's own
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
            output.line(&format!("{} written: who has both files can read every secret", keys.display()))?;
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
            let what = format!(
                "a backup is authenticated with the key of the secrets, and {} is not there; name the server's data \
                 folder with --data",
                ring.present().display()
            );
            return Err(Failure::Refused(what).into());
        }
        let Some((id, key)) = ring.load()?.into_iter().next() else { bail!("the folder of the keys is empty") };
        let key = ::backup::BackupKey::derive(id, &key);
        let programs = direct.programs(config, progress).await?;
        progress.step("Writing the backup");
        let facts = store::backup_facts(&direct.admin_url).await.context("the database is none of this program's")?;
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
        let database = ::backup::Database { url: direct.admin_url.clone(), programs };
        let bytes = ::backup::write(&database, &manifest, &self.file, &key).await?;
        if let Some(file) = &self.include_key {
            KeyFile::of(&Keys::of(&config.data))?.write(file)?;
        }
        Ok((manifest, bytes))
    }
}
