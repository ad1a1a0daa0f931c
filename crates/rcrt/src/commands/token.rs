//! `rcrt token`: the token at hand, a token for an agent's key or for a profile, or a new agent with a key.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use breadcrumb::{NewAgent, Profile, Role};
use clap::Args;
use client::{Client, Credentials, TokenRequest};
use serde_json::json;
use server::{ProvenToken, TokenKey};

use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::keys::Keys;
use crate::output::Output;

/// Print the access token, or make an agent that gets its own
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without options it prints the token that the other commands use. With --owner-id, --agent-id and --agent-key (or \
RCRT_OWNER_ID, RCRT_AGENT_ID, RCRT_AGENT_KEY) it exchanges the key for a token. With --agent it makes an agent and \
shows its key, this once.

A profile keeps tools away: subagent, scheduled and a2asynthesis see fewer than main. An agent that was made with a \
profile has no other; one of the profile main may get a token for any, from its key or, on the server's own machine, \
from the token in the data folder.

Examples:
  curl -H \"Authorization: Bearer $(rcrt token)\" http://127.0.0.1:8081/breadcrumbs
  rcrt token --agent dashboard --role subscriber
  rcrt token --agent helper --role emitter,subscriber --profile subagent
  rcrt token --profile scheduled
  curl -H \"Authorization: Bearer $(rcrt token --operator)\" http://127.0.0.1:8081/tenants")]
pub struct Token {
    /// Make an agent of this name
    #[arg(long, value_name = "NAME", requires = "roles")]
    agent: Option<String>,
    /// What the agent may: curator, emitter, subscriber or runner (again for more, or with commas)
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',', requires = "agent")]
    roles: Vec<Role>,
    /// A token that may list, make and delete tenants; on the server's own machine, with its data folder
    #[arg(long, conflicts_with_all = ["agent", "profile", "agent_key"])]
    operator: bool,
    /// Which kind of agent the token, or the new agent, is for: main, subagent, scheduled or a2asynthesis
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
}

impl Token {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        if let Some(name) = self.agent {
            let agent = NewAgent { name, roles: self.roles, profile: self.profile.unwrap_or_default() };
            let made = connection::client(config)?.create_agent(agent).await?;
            if output.is_json() {
                return output.json(&made);
            }
            output.line(&format!("RCRT_OWNER_ID={}", made.agent.owner_id))?;
            output.line(&format!("RCRT_AGENT_ID={}", made.agent.id))?;
            return output.line(&format!("RCRT_AGENT_KEY={}", made.agent_key));
        }
        let token = match (config.credentials()?, self.profile) {
            (Credentials::Token(token), _) if self.operator => for_operator(config, &token)?,
            (Credentials::Token(token), None) => token,
            (Credentials::Token(token), Some(profile)) => narrowed(config, &token, profile)?,
            (credentials @ Credentials::AgentKey { .. }, None) => {
                Client::new(config.server_url()?, credentials).token().await?
            }
            (Credentials::AgentKey { owner_id, agent_id, key }, profile) => {
                let request = TokenRequest { owner_id, agent_id, agent_key: key, roles: None, profile, ttl_sec: None };
                connection::client(config)?.request_token(&request).await?.token
            }
        };
        if output.is_json() { output.json(&json!({"token": token})) } else { output.line(&token) }
    }
}

/// The data folder's key, and what its token says.
fn opened(config: &Config, token: &str, otherwise: &str) -> anyhow::Result<(TokenKey, ProvenToken)> {
    if !config.data.join("keys/token.key").is_file() {
        return Err(Failure::Refused(otherwise.into()).into());
    }
    let key = Keys::load(&config.data)?.token_key()?;
    let proven = key.verify(token).map_err(|error| {
        Failure::Refused(format!("{error}: the data folder {} did not make it", config.data.display()))
    })?;
    Ok((key, proven))
}

fn left(proven: &ProvenToken) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Duration::from_secs(proven.expires_at.saturating_sub(now))
}

/// The same token for the operator, signed with the data folder's key. It ends when the first one does.
fn for_operator(config: &Config, token: &str) -> anyhow::Result<String> {
    let (key, proven) = opened(
        config,
        token,
        "the operator's token is made on the server's own machine, with its data folder (--data)",
    )?;
    if !proven.identity.has(Role::Curator) {
        let message = "the operator's token is made from a curator's, such as the one in the data folder";
        return Err(Failure::Refused(message.into()).into());
    }
    Ok(key.issue_for_operator(&proven.identity, left(&proven))?)
}

/// The same token for another profile, signed with the data folder's key. It ends when the first one does.
fn narrowed(config: &Config, token: &str, profile: Profile) -> anyhow::Result<String> {
    let otherwise = "a token for another profile is made from an agent's key (--owner-id, --agent-id, --agent-key), or \
                     on the server's own machine with its data folder (--data)";
    let (key, proven) = opened(config, token, otherwise)?;
    let left = left(&proven);
    let mut identity = proven.identity;
    if identity.profile != Profile::Main && identity.profile != profile {
        let message = format!("the token is for the profile {}, and for no other", identity.profile);
        return Err(Failure::Refused(message).into());
    }
    identity.profile = profile;
    Ok(key.issue(&identity, left)?)
}
