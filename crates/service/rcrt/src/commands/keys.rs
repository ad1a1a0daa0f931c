//! `rcrt keys`: key rotation while servers run.

use std::collections::BTreeSet;

use anyhow::bail;
use clap::{Args, Subcommand};
use rcrt_store::{Rewrapped, UnreadableSecret};
use serde_json::json;

use crate::assembly::{DirectDatabase, check_secrets_keys, check_url};
use crate::config::Config;
use crate::exit::fail;
use crate::keys::{self, KeyKind};
use crate::output::{Output, counted};
use crate::progress::ConsoleProgress;

/// Rotate the keys of tokens and secrets while servers run
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
A server checks its data folder and uses a new key within a second. If several servers have separate data folders, run \
`rcrt keys rotate KIND --prepare`, copy the new file to the folder `keys` of each of them, and then rotate on each.

Examples:
  rcrt keys rotate secrets --drop-old
  rcrt keys rotate tokens
  rcrt keys rotate tokens --drop-old")]
pub enum Keys {
    List(List),
    Rotate(Rotate),
    Rewrap(Rewrap),
}

/// List the keys by their ids, and the missing keys of secrets in the database
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Create a new key and use it from now on; the old one still verifies and decrypts
#[derive(Debug, Args)]
pub struct Rotate {
    /// Which key. For secrets, all secrets are encrypted under the new one
    #[arg(value_enum)]
    kind: KeyKind,
    /// Only create the new key, so that it can be copied to the folders of other servers first
    #[arg(long, conflicts_with = "drop_old")]
    prepare: bool,
    /// Then delete the older keys, which invalidates their tokens. A key that a secret still needs
    /// stays. Older backups can only be restored with the keys of their time
    #[arg(long)]
    drop_old: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Encrypt every secret under the newest key, after an interrupted `rotate secrets`
#[derive(Debug, Args)]
pub struct Rewrap {
    /// Delete the secrets whose key is lost, and print their names
    #[arg(long)]
    lose_secrets: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Debug, Args)]
struct DatabaseArgs {
    /// The database, if it is not the embedded one of the data folder
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

impl Keys {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let keys = keys::Keys::of(&config.data);
        if ![KeyKind::Tokens, KeyKind::Secrets].iter().any(|kind| keys.ring(*kind).present().exists()) {
            fail!(
                NotFound,
                "there are no keys in {}; name the server's data folder with --data",
                config.data.display()
            );
        }
        match self {
            Self::List(list) => list.run(config, &keys, output).await,
            Self::Rotate(rotate) => rotate.run(config, &keys, output).await,
            Self::Rewrap(rewrap) => rewrap.run(config, &keys, output).await,
        }
    }
}

/// A key as `rcrt keys list` shows it.
struct Row {
    kind: &'static str,
    id: String,
    state: &'static str,
}

impl List {
    async fn run(self, config: &Config, keys: &keys::Keys, output: Output) -> anyhow::Result<()> {
        check_url(self.database.database_url.as_ref())?;
        let mut rows = Vec::new();
        for (ring, kind) in [(KeyKind::Tokens, "tokens"), (KeyKind::Secrets, "secrets")] {
            let ring = keys.ring(ring);
            let mut state = if ring.present().exists() { "in use" } else { "known" };
            for id in ring.ids()? {
                rows.push(Row { kind, id, state });
                state = "known";
            }
        }
        match self.database.missing(config, keys).await {
            Ok(missing) => rows.extend(missing.into_iter().map(|id| Row { kind: "secrets", id, state: "missing" })),
            Err(error) => output.note(&format!("the keys that the database needs are not known: {error:#}")),
        }
        if output.is_json() {
            let rows: Vec<_> = rows
                .iter()
                .map(|Row { kind, id, state }| {
                    json!({"kind": kind, "id": id, "in_use": *state == "in use", "missing": *state == "missing"})
                })
                .collect();
            return output.json(&rows);
        }
        let rows: Vec<Vec<String>> =
            rows.into_iter().map(|Row { kind, id, state }| vec![kind.to_owned(), id, state.to_owned()]).collect();
        output.table(&["KIND", "ID", "STATE"], &rows)
    }
}

impl Rotate {
    async fn run(self, config: &Config, keys: &keys::Keys, output: Output) -> anyhow::Result<()> {
        let ring = keys.ring(self.kind);
        if self.prepare {
            let file = ring.prepare()?;
            if output.is_json() {
                return output.json(&json!({"prepared": file}));
            }
            return output.line(&format!(
                "{} is created and not used yet; copy it to the folder `keys` of the other servers, then rotate on each",
                file.display()
            ));
        }
        check_url(self.database.database_url.as_ref())?;
        let rotate = || {
            let id = ring.rotate()?;
            if !output.is_json() {
                output.line(&format!("the key {id} is in use"))?;
            }
            anyhow::Ok(id)
        };
        let (id, still_needed) = match self.kind {
            KeyKind::Tokens => (rotate()?, Vec::new()),
            KeyKind::Secrets => {
                let work = async |url: &str| {
                    check_secrets_keys(url, keys, Some("no key was created or deleted")).await?;
                    let id = rotate()?;
                    print_rewrapped(&rcrt_store::rewrap_secrets(url, &keys.secrets_keys()?).await?, output)?;
                    let needed = rcrt_store::secrets_by_key(url).await?;
                    anyhow::Ok((id, needed.into_iter().map(|(id, _)| id).collect::<Vec<_>>()))
                };
                self.database.with(config, REWRAPPING, work).await?
            }
        };
        if !self.drop_old {
            return if output.is_json() { output.json_line(&json!({"in_use": id})) } else { Ok(()) };
        }
        let dropped: Vec<String> = ring
            .drop_older(|id| still_needed.iter().any(|needed| needed == id))?
            .into_iter()
            .map(|one| one.id)
            .collect();
        let warning = (self.kind == KeyKind::Secrets && !dropped.is_empty()).then(|| about_backups(&dropped));
        if output.is_json() {
            return output.json_line(&json!({"in_use": id, "dropped": dropped, "warning": warning}));
        }
        for id in &dropped {
            output.line(&format!("the key {id} is deleted"))?;
        }
        if let Some(warning) = warning {
            output.note(&format!("warning: {warning}"));
        }
        Ok(())
    }
}

impl Rewrap {
    async fn run(self, config: &Config, keys: &keys::Keys, output: Output) -> anyhow::Result<()> {
        check_url(self.database.database_url.as_ref())?;
        if self.lose_secrets {
            let ids = keys.ring(KeyKind::Secrets).ids()?;
            let work = async |url: &str| anyhow::Ok(rcrt_store::delete_unreadable_secrets(url, &ids).await?);
            let lost = self.database.with(config, "Deleting the secrets whose key is lost", work).await?;
            return print_lost(&lost, output);
        }
        let work = async |url: &str| {
            check_secrets_keys(url, keys, Some("nothing was changed")).await?;
            print_rewrapped(&rcrt_store::rewrap_secrets(url, &keys.secrets_keys()?).await?, output)
        };
        self.database.with(config, REWRAPPING, work).await
    }
}

const REWRAPPING: &str = "Encrypting secrets under the new key";

fn about_backups(dropped: &[String]) -> String {
    format!(
        "backups from before this rotation need the deleted key {} to be restored; keep its copy (a file of `rcrt backup \
         --include-key`, or a copy of the folder `keys`) as long as you keep them, or make a new backup now",
        dropped.join(" or ")
    )
}

impl DatabaseArgs {
    /// Does this work with the URL of the database. `step` says what it does.
    async fn with<T>(
        &self,
        config: &Config,
        step: &str,
        work: impl AsyncFnOnce(&str) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let progress = ConsoleProgress::new();
        let direct = DirectDatabase::open(config, self.database_url.as_ref(), &progress).await?;
        progress.step(step);
        let done = work(&direct.admin_url).await;
        direct.close().await;
        progress.done();
        done
    }

    /// The ids of the keys that secrets of the database need and the folder does not have.
    async fn missing(&self, config: &Config, keys: &keys::Keys) -> anyhow::Result<BTreeSet<String>> {
        let ids = keys.ring(KeyKind::Secrets).ids()?;
        let work = async |url: &str| anyhow::Ok(rcrt_store::secrets_under_other_keys(url, &ids).await?);
        let unreadable = self.with(config, "Looking for missing keys", work).await?;
        Ok(unreadable.into_iter().map(|secret| secret.key_id).collect())
    }
}

/// Prints the result, and fails if a secret cannot be decrypted.
fn print_rewrapped(rewrapped: &Rewrapped, output: Output) -> anyhow::Result<()> {
    let Rewrapped { done, unreadable } = rewrapped;
    if output.is_json() {
        let unreadable: Vec<_> = unreadable.iter().map(as_json).collect();
        output.json_line(&json!({"rewrapped": done, "unreadable": unreadable}))?;
    } else {
        output.line(&format!("{} encrypted under it", counted(*done as u64, "secret is", "secrets are")))?;
    }
    if unreadable.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
    bail!(
        "{} cannot be decrypted and was not changed; set it again, or delete it; no key was deleted",
        names.join(", ")
    )
}

/// Prints the secrets that were deleted because their key is lost.
pub(super) fn print_lost(lost: &[UnreadableSecret], output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        return output.json(&json!({"lost": lost.iter().map(as_json).collect::<Vec<_>>()}));
    }
    output.line(&format!(
        "{} deleted, because the key is lost",
        counted(lost.len() as u64, "secret is", "secrets are")
    ))?;
    for secret in lost {
        output.line(&format!("{secret} is lost; it was encrypted under the key {}", secret.key_id))?;
    }
    Ok(())
}

pub(super) fn as_json(secret: &UnreadableSecret) -> serde_json::Value {
    json!({"id": secret.id, "name": secret.name, "key": secret.key_id})
}
