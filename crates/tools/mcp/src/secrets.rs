//! The secrets that a server's record names. They must be granted to the record.

use std::sync::Arc;

use rcrt_breadcrumb::{HostEntry, SecretInfo, Secrets, check_opaque_length};
use rcrt_egress::{HeldSecret, Vault};
use uuid::Uuid;

use crate::failure::McpError;
use crate::server::{ServerConfig, Transport, pieces};

/// The values of the secrets that the record names.
pub async fn vault(store: &dyn Secrets, record: Uuid, config: &ServerConfig) -> Result<Arc<Vault>, McpError> {
    let names = config.transport.secrets();
    if names.is_empty() {
        return Ok(Arc::default());
    }
    let known = store.secrets().await?;
    let mut held = Vec::new();
    for name in names {
        let secret = check(known.iter().find(|secret| secret.name == name), &name, record, config)?;
        let reason = format!("MCP server {}", config.name);
        let value = store.decrypt_secret(secret.id, &reason, Some(record)).await?;
        let hosts: Result<Vec<HostEntry>, _> = secret.hosts.iter().map(|host| HostEntry::parse(host)).collect();
        let hosts = hosts.map_err(|error| McpError::Configuration(format!("the secret {name:?}: {error}")))?;
        if !secret.readable {
            check_opaque_length(value.len(), "its value")
                .map_err(|violations| McpError::Configuration(format!("the secret {name:?}: {violations}")))?;
        }
        held.push(HeldSecret { name, value, hosts, readable: secret.readable });
    }
    Vault::new(held).map(Arc::new).map_err(|error| McpError::Configuration(error.to_string()))
}

/// Refuses a secret that the server cannot use, with the command that fixes it.
fn check<'s>(
    secret: Option<&'s SecretInfo>,
    name: &str,
    record: Uuid,
    config: &ServerConfig,
) -> Result<&'s SecretInfo, McpError> {
    let refuse = |why: String| Err(McpError::Configuration(why));
    let is_program = matches!(config.transport, Transport::Stdio { .. });
    let access = if is_program { "--readable" } else { "--host HOST" };
    match secret {
        None => refuse(format!(
            "the secret {name:?} does not exist; a curator creates it with `rcrt secret set {name} {access}`"
        )),
        Some(secret) if !secret.is_granted_to(record) => refuse(format!(
            "the secret {name:?} is not granted to this server; a curator grants it with `rcrt secret grant {name} {record}`"
        )),
        // A program gets the value itself.
        Some(secret) if is_program && !secret.readable => refuse(format!(
            "the secret {name:?} is not readable, and a program gets the value itself; a curator changes that with \
             `rcrt secret set {name} --keep-value --readable`"
        )),
        Some(secret) if !is_program && secret.hosts.is_empty() && !secret.readable => refuse(format!(
            "the secret {name:?} is bound to no host; a curator binds it with `rcrt secret set {name} --keep-value --host HOST`"
        )),
        Some(secret) => Ok(secret),
    }
}

/// The text with each placeholder replaced by what the vault shows for it: the value of a readable
/// secret, else its handle.
pub fn filled(text: &str, vault: &Vault) -> String {
    let shown = |name: &str| vault.shown_as(name).unwrap_or_default().to_owned();
    pieces(text).into_iter().map(|piece| piece.map_or_else(shown, str::to_owned)).collect()
}
