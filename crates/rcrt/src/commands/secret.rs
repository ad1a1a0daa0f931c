//! `rcrt secret`: names and values that tools may use. Values come from stdin, never from the command line.

use anyhow::Context;
use breadcrumb::{Breadcrumbs, NewSecret, SecretInfo};
use clap::Subcommand;
use serde_json::json;

use crate::config::Config;
use crate::exit::Failure;
use crate::output::Output;
use crate::{connection, input};

/// Keep the secrets that tools may read
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  rcrt secret set WEATHER_KEY            (asks for the value, without showing it)
  rcrt secret set WEATHER_KEY < key.txt
  rcrt secret list")]
pub enum Secret {
    /// Create a secret, or put a new value in place of the old one
    Set {
        /// A letter or _, then letters, digits and _
        name: String,
    },
    /// List the names; values are never shown
    List,
    /// Delete a secret
    Delete { name: String },
}

impl Secret {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self {
            Self::Set { name } => set(config, output, name).await,
            Self::List => list(config, output).await,
            Self::Delete { name } => delete(config, output, &name).await,
        }
    }
}

async fn set(config: &Config, output: Output, name: String) -> anyhow::Result<()> {
    NewSecret { name: name.clone(), value: "x".into() }
        .check()
        .map_err(|violations| Failure::Usage(violations.to_string()))?;
    let store = connection::store(config)?;
    let known = find(&*store, &name).await?;
    // The prompt may wait for a person: not on a thread that others need.
    let prompt = format!("Value of {name}");
    let value =
        tokio::task::spawn_blocking(move || input::secret(&prompt)).await.context("the value was not read")??;
    let (secret, what) = match known {
        Some(secret) => (store.rotate_secret(secret.id, value).await?, "changed"),
        None => (store.create_secret(NewSecret { name, value }).await?, "created"),
    };
    if output.is_json() {
        return output.json(&secret);
    }
    output.line(&format!("{} {what} (version {})", secret.name, secret.version))
}

async fn list(config: &Config, output: Output) -> anyhow::Result<()> {
    let secrets = connection::store(config)?.secrets().await?;
    if output.is_json() {
        return output.json(&secrets);
    }
    let rows: Vec<Vec<String>> = secrets
        .iter()
        .map(|one| {
            let changed = one.updated_at.format("%Y-%m-%d %H:%M:%S UTC").to_string();
            vec![one.name.clone(), one.version.to_string(), changed, one.id.to_string()]
        })
        .collect();
    output.table(&["NAME", "VERSION", "CHANGED", "ID"], &rows)
}

async fn delete(config: &Config, output: Output, name: &str) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let secret =
        find(&*store, name).await?.ok_or_else(|| Failure::NotFound(format!("there is no secret named {name}")))?;
    store.delete_secret(secret.id).await?;
    if output.is_json() {
        return output.json(&json!({"deleted": secret.id, "name": secret.name}));
    }
    output.line(&format!("{name} deleted"))
}

async fn find(store: &dyn Breadcrumbs, name: &str) -> anyhow::Result<Option<SecretInfo>> {
    Ok(store.secrets().await?.into_iter().find(|secret| secret.name == name))
}
