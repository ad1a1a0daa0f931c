//! The secrets that a server's record names. They must be granted to the record.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{HostEntry, SecretChanges, SecretInfo, Secrets, StoreError, check_opaque_length};
use rcrt_egress::{Egress, HeldSecret, Origin, Vault};
use tokio::time::{Instant, sleep};
use url::Url;
use uuid::Uuid;

use crate::connection::TokenInUse;
use crate::failure::McpError;
use crate::oauth::{Gate, OAuthError, Tokens, now};
use crate::server::{Auth, ServerConfig, Transport, pieces};

/// How often another runner is waited for that renews the tokens, and the pause.
const MAX_LOOKS: usize = 60;
const LOOK: Duration = Duration::from_secs(1);
/// A connection is used this long, even if its access token expires sooner.
const SHORTEST_USE: i64 = 60;

/// What a connection gets from the store.
pub struct Access {
    pub vault: Arc<Vault>,
    pub token: Option<TokenInUse>,
    /// Whether the token was renewed for this connection.
    pub is_new: bool,
}

/// The values of the secrets that the record names. `refused`: the version of the secret whose
/// access token the server refused. `egress`: to renew the token.
pub async fn access(
    store: &dyn Secrets,
    egress: &Egress,
    (record, config): (Uuid, &ServerConfig),
    refused: Option<i64>,
) -> Result<Access, McpError> {
    let mut names = config.transport.secrets();
    if names.is_empty() {
        return Ok(Access { vault: Arc::default(), token: None, is_new: false });
    }
    let mut held = Vec::new();
    let (mut token, mut is_new) = (None, false);
    if let Transport::Http { url, auth: Some(Auth::OAuth { secret }), .. } = &config.transport {
        names.retain(|name| name != secret);
        let origin = Origin { owner_id: Uuid::nil(), agent_id: None, tool_id: Some(record), call: None };
        let gate = Gate { egress, server: &config.name, url, origin: Some(origin) };
        let (tokens, version, is_renewed) = tokens(store, &gate, (record, config), secret, refused).await?;
        let until = tokens.expires_at().map(|at| {
            let seconds = at.saturating_sub(now()).clamp(SHORTEST_USE, i64::from(u32::MAX));
            Instant::now() + Duration::from_secs(seconds.unsigned_abs())
        });
        (token, is_new) = (Some(TokenInUse { version, until }), is_renewed);
        held.extend(held_tokens(&tokens, secret, url));
    }
    let known = store.secrets().await?;
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
    let vault = Vault::new(held).map_err(|error| McpError::Configuration(error.to_string()))?;
    Ok(Access { vault: Arc::new(vault), token, is_new })
}

/// The access token, which only the server gets, and what is only redacted.
fn held_tokens(tokens: &Tokens, name: &str, url: &Url) -> Vec<HeldSecret> {
    let held = |name: String, value: &str, hosts: Vec<HostEntry>| HeldSecret {
        name,
        value: value.to_owned(),
        hosts,
        readable: false,
    };
    let host = rcrt_breadcrumb::Host::of(url);
    let host = host.map(|host| HostEntry { host, port: url.port_or_known_default(), subdomains: false });
    let others = tokens.other_secrets().enumerate();
    let others = others.map(|(index, value)| held(format!("{name}_{index}"), value, Vec::new()));
    std::iter::once(held(name.to_owned(), tokens.access_token(), host.into_iter().collect())).chain(others).collect()
}

/// The tokens, renewed if that is necessary; the version of the secret; and whether they were
/// renewed here.
async fn tokens(
    store: &dyn Secrets,
    gate: &Gate<'_>,
    (record, config): (Uuid, &ServerConfig),
    name: &str,
    refused: Option<i64>,
) -> Result<(Tokens, i64, bool), McpError> {
    let login = format!("`rcrt mcp login {}`", config.name);
    let reason = format!("MCP server {}", config.name);
    for _ in 0..MAX_LOOKS {
        let known = store.secrets().await?;
        let secret = known.iter().find(|secret| secret.name == name);
        let secret = secret.filter(|secret| secret.is_granted_to(record));
        let secret = secret.ok_or_else(|| McpError::Configuration(format!("nobody has logged in; use {login}")))?;
        let value = store.decrypt_secret(secret.id, &reason, Some(record)).await?;
        let tokens = Tokens::read(&value).filter(|tokens| tokens.are_for(gate.url));
        let tokens = tokens.ok_or_else(|| {
            McpError::Configuration(format!(
                "the secret {name:?} has no tokens for this URL; log in again with {login}"
            ))
        })?;
        if refused != Some(secret.version) && !tokens.need_renewal() {
            return Ok((tokens, secret.version, false));
        }
        if !tokens.can_be_renewed() {
            return Err(McpError::Unauthorized("its access token is no longer valid".to_owned()));
        }
        // A refresh token that two runners use at the same time is revoked by many servers.
        let claim = if tokens.is_claimed() { None } else { renew(store, secret, record, &tokens.claimed()).await? };
        let Some(claim) = claim else {
            sleep(LOOK).await;
            continue;
        };
        let renewed = tokens.renewed(gate).await;
        let kept = match &renewed {
            Ok(renewed) => renewed.clone(),
            // It will be refused every time.
            Err(OAuthError::Denied("invalid_grant")) => tokens.without_renewal(),
            Err(_) => tokens,
        };
        let written = renew(store, &claim, record, &kept).await?;
        let renewed = renewed.map_err(|error| match error {
            OAuthError::Denied(code) => McpError::Unauthorized(format!("its access token cannot be renewed: {code}")),
            other => McpError::Unreachable(format!("its access token cannot be renewed: {other}")),
        })?;
        // Otherwise a person has logged in meanwhile.
        if let Some(written) = written {
            return Ok((renewed, written.version, true));
        }
    }
    Err(McpError::Unreachable("another runner is renewing its access token".to_owned()))
}

/// Writes the tokens if the secret has not changed. `None`: it has.
async fn renew(
    store: &dyn Secrets,
    secret: &SecretInfo,
    record: Uuid,
    tokens: &Tokens,
) -> Result<Option<SecretInfo>, McpError> {
    let value = tokens.value().map_err(|error| McpError::Configuration(error.to_string()))?;
    let changes = SecretChanges { tool_id: Some(record), version: Some(secret.version), ..SecretChanges::value(value) };
    match store.update_secret(secret.id, changes).await {
        Ok(written) => Ok(Some(written)),
        Err(StoreError::VersionConflict { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
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
