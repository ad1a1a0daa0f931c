//! `rcrt restore`: restores a database from a backup.

use std::path::PathBuf;

use ::rcrt_backup::{BackupError, BackupKey, Manifest, Proof};
use anyhow::{Context, bail};
use clap::Args;
use rcrt_postgres::DataLock;
use rcrt_store::UnreadableSecret;
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use url::Url;

use super::keys::{as_json, print_lost};
use crate::assembly::{DataFolder, DirectDatabase, check_url};
use crate::config::Config;
use crate::keys::{KeyFile, KeyKind, Keys};
use crate::output::Output;
use crate::progress::ConsoleProgress;

/// The id and the bytes of a secrets key.
type SecretKey = (String, [u8; 32]);

/// Restore the database from a backup
#[derive(Debug, Args)]
#[command(after_long_help = "\
Stop all servers and runners of the database first. The file's authenticity, its version and the keys of its secrets \
are checked before anything is written. An ordinary database user owns the restored tables. Numbers of new events are \
higher than all earlier ones; a subscriber that has seen a lost event gets an error when it reconnects.

Examples:
  rcrt restore nightly.rcrt --data /var/lib/rcrt --key-file nightly.keys
  rcrt restore nightly.rcrt --replace
  rcrt restore nightly.rcrt --database-url postgres://rcrt@db/rcrt")]
pub struct Restore {
    /// The backup file
    file: PathBuf,
    /// Delete what is in the database
    #[arg(long)]
    replace: bool,
    /// The keys that `rcrt backup --include-key` wrote; they are added to the data folder
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Restore even if a key is lost; the secrets under it are deleted
    #[arg(long)]
    lose_secrets: bool,
    /// Restore a backup that cannot be verified: its key is lost, or it was written before backups
    /// were authenticated. Anybody who could write to the file then controls the database: agents,
    /// roles, grants and tools
    #[arg(long)]
    accept_unverified: bool,
    /// The database, if it is not the embedded one of the data folder
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

impl Restore {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        check_url(self.database_url.as_ref())?;
        let progress = ConsoleProgress::new();
        progress.step("Reading the backup");
        let keys = self.key_file.as_ref().map(KeyFile::read).transpose()?;
        let known = known_keys(config, keys.as_ref())?;
        let backup = self.open(config, &known)?;
        self.check_version(&backup.manifest)?;
        let present = self.check_keys(config, &backup.manifest, known)?;

        let lock = DataLock::acquire(&config.data)?;
        let data = lock.data_dir().to_owned();
        let (direct, _lock) = match &self.database_url {
            Some(url) => (DirectDatabase::open(config, Some(url), &progress).await?, Some(lock)),
            None => (DirectDatabase::start(lock, &progress).await?, None),
        };
        let marker = DataFolder::unfinished_restore(&data);
        let restored = async {
            // The marker only counts for the same database.
            let is_unfinished = std::fs::read_to_string(&marker).is_ok_and(|text| text == self.target());
            self.check_empty(&direct, is_unfinished).await?;
            if let Some(keys) = &keys {
                keys.admit(&data)?;
            }
            Keys::load(&data)?;
            std::fs::write(&marker, self.target())
                .with_context(|| format!("{} cannot be written", marker.display()))?;
            let lost = self.load(config, &direct, &backup, &present, &progress).await?;
            std::fs::remove_file(&marker).with_context(|| format!("{} cannot be removed", marker.display()))?;
            anyhow::Ok(lost)
        };
        let restored = restored.await;
        direct.close().await;
        progress.done();
        let lost = restored?;
        if output.is_json() {
            let lost: Vec<_> = lost.iter().map(as_json).collect();
            return output.json(&json!({"restored": self.file, "manifest": backup.manifest, "lost": lost}));
        }
        let Manifest { made_at, program, .. } = &backup.manifest;
        output.line(&format!(
            "restored the backup from {} (by version {program})",
            made_at.format("%Y-%m-%d %H:%M:%S UTC")
        ))?;
        if self.lose_secrets { print_lost(&lost, output) } else { Ok(()) }
    }

    /// Identifies the database, without its password.
    fn target(&self) -> String {
        let Some(url) = &self.database_url else { return "embedded".to_owned() };
        let Ok(mut url) = Url::parse(url) else { return "unknown".to_owned() };
        // Fails only for a URL without a host, which has no password.
        let _ = url.set_password(None);
        url.to_string()
    }

    fn check_version(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let newest = rcrt_store::MIGRATOR.iter().map(|one| one.version).max().unwrap_or_default();
        if manifest.migration > newest {
            bail!(
                "{} was made by version {} (migration {}), but this version supports migrations up to {newest}; restore \
                 it with that version or a later one",
                self.file.display(),
                manifest.program,
                manifest.migration
            );
        }
        Ok(())
    }

    /// Opens the file, and refuses it if none of the keys authenticates it.
    fn open(&self, config: &Config, known: &[SecretKey]) -> anyhow::Result<::rcrt_backup::Backup> {
        let keys = known.iter().map(|(id, key)| BackupKey::derive(id, key)).collect::<Result<Vec<_>, _>>()?;
        let error = match ::rcrt_backup::open(&self.file, Proof::Keys(&keys)) {
            Err(error @ (BackupError::KeyMissing { .. } | BackupError::Unauthenticated { .. })) => error,
            opened => return Ok(opened?),
        };
        if self.accept_unverified {
            tracing::warn!(%error, "the backup is restored unverified");
            return Ok(::rcrt_backup::open(&self.file, Proof::Undamaged)?);
        }
        let help = match error {
            BackupError::KeyMissing { .. } => format!(
                "Copy the folder `keys` of the backed up system to {}, or name the file of --include-key with --key-file. \
                 If the key is lost, ",
                config.data.join("keys").display()
            ),
            _ => String::new(),
        };
        bail!(
            "{error}. {help}--accept-unverified restores the backup without this check, but anybody who could write to \
             the file then controls the agents, roles, grants and tools"
        )
    }

    /// Returns the ids of the available keys. Refuses a backup with secrets that they cannot
    /// decrypt.
    fn check_keys(&self, config: &Config, manifest: &Manifest, known: Vec<SecretKey>) -> anyhow::Result<Vec<String>> {
        let present: Vec<String> = known.into_iter().map(|(id, _)| id).collect();
        let missing: Vec<&str> =
            manifest.secrets_keys.iter().filter(|id| !present.contains(id)).map(String::as_str).collect();
        if !missing.is_empty() && !self.lose_secrets {
            bail!(
                "secrets of this backup are encrypted under the key {}, which is neither in {} nor in a --key-file; copy \
                 the folder `keys` of the backed up system there, or use --lose-secrets; nothing was written",
                missing.join(" and the key "),
                config.data.join("keys").display()
            );
        }
        Ok(present)
    }

    /// Refuses a database that is not empty, unless `--replace` is set.
    async fn check_empty(&self, direct: &DirectDatabase, is_unfinished: bool) -> anyhow::Result<()> {
        let is_empty = rcrt_store::is_empty(&direct.admin_url).await.context("the database cannot be reached")?;
        if !is_empty && !self.replace && !is_unfinished {
            bail!("the database is not empty; --replace deletes its content (make a backup of it first)");
        }
        Ok(())
    }

    async fn load(
        &self,
        config: &Config,
        direct: &DirectDatabase,
        backup: &::rcrt_backup::Backup,
        keys: &[String],
        progress: &ConsoleProgress,
    ) -> anyhow::Result<Vec<UnreadableSecret>> {
        // The event numbers of the current database, if there is one: subscribers may have seen
        // them.
        let counted = rcrt_store::backup_facts(&direct.admin_url).await.map_or(0, |facts| facts.event_horizon);
        // Find the programs before anything is deleted, because the restore needs them.
        let programs = direct.programs(config, progress).await?;
        progress.step("Restoring");
        rcrt_store::create_app_role(&direct.restorer_url, direct.is_embedded)
            .await
            .context("the role of the store cannot be set up")?;
        let url = rcrt_store::empty_for_restore(&direct.restorer_url, direct.is_embedded)
            .await
            .context("the database cannot be emptied")?;
        // From here on, never use a superuser, because restored code could run.
        ::rcrt_backup::load(backup, &::rcrt_backup::Database { url: url.clone(), programs }).await?;
        progress.step("Migrating the database");
        let options: PgConnectOptions = url.parse().context("the database URL is not valid")?;
        Box::pin(rcrt_store::migrate(&options, &rcrt_store::MIGRATOR, &|step| progress.step(step))).await?;
        rcrt_store::continue_event_numbers(&url, backup.manifest.event_horizon.max(counted)).await?;
        let lost =
            if self.lose_secrets { rcrt_store::delete_unreadable_secrets(&url, keys).await? } else { Vec::new() };
        if url != direct.restorer_url && !direct.is_embedded {
            rcrt_store::close_restored_owner(&direct.restorer_url).await?;
        }
        Ok(lost)
    }
}

/// The available secrets keys with their ids.
fn known_keys(config: &Config, more: Option<&KeyFile>) -> anyhow::Result<Vec<SecretKey>> {
    let ring = Keys::of(&config.data).ring(KeyKind::Secrets);
    let mut known = if ring.present().exists() { ring.load()? } else { Vec::new() };
    known.extend(more.map(KeyFile::with_ids).unwrap_or_default());
    Ok(known)
}
