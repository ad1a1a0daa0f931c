//! `rcrt keys`: key rotation while servers run.

use clap::{Args, Subcommand};
use rcrt_store::Rewrapped;
use serde_json::json;

use crate::assembly::{DirectDatabase, check_url};
use crate::config::Config;
use crate::exit::Failure;
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
    /// List the keys by their ids
    List,
    Rotate(Rotate),
    Rewrap(Rewrap),
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
        if !keys.ring(KeyKind::Secrets).present().exists() {
            let what =
                format!("there are no keys in {}; name the server's data folder with --data", config.data.display());
            return Err(Failure::NotFound(what).into());
        }
        match self {
            Self::List => list(&keys, output),
            Self::Rotate(rotate) => rotate.run(config, &keys, output).await,
            Self::Rewrap(Rewrap { database }) => {
                let (rewrapped, _) = database.rewrap(config, &keys).await?;
                print_rewrapped(&rewrapped, output)
            }
        }
    }
}

fn list(keys: &keys::Keys, output: Output) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for (kind, name) in [(KeyKind::Tokens, "tokens"), (KeyKind::Secrets, "secrets")] {
        for (index, (id, _)) in keys.ring(kind).load()?.into_iter().enumerate() {
            rows.push((name, id, index == 0));
        }
    }
    if output.is_json() {
        let rows: Vec<_> =
            rows.iter().map(|(kind, id, used)| json!({"kind": kind, "id": id, "in_use": used})).collect();
        return output.json(&rows);
    }
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(kind, id, used)| vec![kind.to_owned(), id, if used { "in use" } else { "known" }.to_owned()])
        .collect();
    output.table(&["KIND", "ID", "STATE"], &rows)
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
        let id = ring.rotate()?;
        if !output.is_json() {
            output.line(&format!("the key {id} is in use"))?;
        }
        let mut still_needed = Vec::new();
        if self.kind == KeyKind::Secrets {
            let (rewrapped, needed) = self.database.rewrap(config, keys).await?;
            print_rewrapped(&rewrapped, output)?;
            still_needed = needed;
        }
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

fn about_backups(dropped: &[String]) -> String {
    format!(
        "backups from before this rotation need the deleted key {} to be restored; keep its copy (a file of `rcrt backup \
         --include-key`, or a copy of the folder `keys`) as long as you keep them, or make a new backup now",
        dropped.join(" or ")
    )
}

impl DatabaseArgs {
    /// Encrypts every secret under the newest key. Also returns the ids of the keys that secrets
    /// still use.
    async fn rewrap(&self, config: &Config, keys: &keys::Keys) -> anyhow::Result<(Rewrapped, Vec<String>)> {
        let progress = ConsoleProgress::new();
        let direct = DirectDatabase::open(config, self.database_url.as_ref(), &progress).await?;
        progress.step("Encrypting secrets under the new key");
        let done = async {
            let rewrapped = rcrt_store::rewrap_secrets(&direct.admin_url, &keys.secrets_keys()?).await?;
            let needed = rcrt_store::secrets_by_key(&direct.admin_url).await?.into_iter().map(|(id, _)| id).collect();
            anyhow::Ok((rewrapped, needed))
        };
        let done = done.await;
        direct.close().await;
        progress.done();
        done
    }
}

fn print_rewrapped(rewrapped: &Rewrapped, output: Output) -> anyhow::Result<()> {
    let Rewrapped { done, unreadable } = rewrapped;
    if output.is_json() {
        output.json_line(&json!({"rewrapped": done, "unreadable": unreadable}))?;
    } else {
        output.line(&format!("{} encrypted under it", counted(*done as u64, "secret is", "secrets are")))?;
        for id in unreadable {
            output.line(&format!("the secret {id} is encrypted under a key that is not available"))?;
        }
    }
    Ok(())
}
