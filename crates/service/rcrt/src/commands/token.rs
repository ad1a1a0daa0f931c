//! `rcrt token`: the current token, a token for an agent's key or for a profile, or a new agent
//! with a key. Lists and revokes tokens.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::{Args, Subcommand};
use rcrt_breadcrumb::{MAX_TOKENS, NewAgent, Profile, Role, StoreError, TokenQuery};
use rcrt_client::{Client, Credentials, Revoke, TokenRequest};
use rcrt_server::{TokenKey, VerifiedToken};
use serde_json::json;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::commands::agent;
use crate::config::{Config, id};
use crate::exit::{Failure, fail};
use crate::keys::Keys;
use crate::output::Output;
use crate::{connection, input};

/// Print the access token, or create an agent
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without options, it prints the token that the other commands use. With the key of an agent \
(RCRT_OWNER_ID, RCRT_AGENT_ID and RCRT_AGENT_KEY, or their options), it exchanges the key for a token. With --agent, it \
creates an agent and prints its key once.

A profile restricts the tools: subagent, scheduled and a2asynthesis can call fewer tools than main. An agent with one of \
these profiles cannot get another. An agent with the profile main can get a token for any profile, with its key or, on \
the server's machine, with the token in the data folder.

Examples:
  curl -H \"Authorization: Bearer $(rcrt token)\" http://127.0.0.1:8081/breadcrumbs
  rcrt token --agent dashboard --role subscriber
  rcrt token --agent helper --role emitter,subscriber --profile subagent
  rcrt token --profile scheduled
  curl -H \"Authorization: Bearer $(rcrt token --operator)\" http://127.0.0.1:8081/tenants
  rcrt token list
  rcrt token revoke --jti 5f2d1c3e-0000-4000-8000-000000000001
  rcrt token revoke --stdin < leaked.token
  rcrt token revoke --all --agent 0198c0de-0000-7000-8000-000000000001")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Token {
    #[command(subcommand)]
    action: Option<Action>,
    /// Create an agent with this name
    #[arg(long, value_name = "NAME", requires = "roles")]
    agent: Option<String>,
    /// A role of the agent: curator, emitter, subscriber, runner or caller. Can be repeated, or
    /// separated by commas
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',', requires = "agent")]
    roles: Vec<Role>,
    /// Print a token that can list, create and delete tenants; works on the server's machine, with
    /// its data folder
    #[arg(long, conflicts_with_all = ["agent", "profile", "agent_key"])]
    operator: bool,
    /// The profile of the token, or of the new agent: main, subagent, scheduled or a2asynthesis
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(ListTokens),
    Revoke(RevokeToken),
}

/// List tokens that have not expired, with their last use: of all agents for a curator, else the
/// agent's own
#[derive(Debug, Args)]
struct ListTokens {
    /// Only tokens of this agent, by its name or id
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only tokens with a lower number, for the next page
    #[arg(long, value_name = "NUMBER")]
    before: Option<i64>,
    /// Maximum number of rows, 1 to 1000
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TOKENS)))]
    limit: u32,
}

impl ListTokens {
    async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let agent_id = agent::id_of(&client, self.agent.as_deref()).await?;
        let query = TokenQuery { id: None, agent_id, before: self.before, limit: self.limit };
        let tokens = client.tokens(&query).await?;
        if output.is_json() { output.json(&tokens) } else { agent::token_table(output, &tokens) }
    }
}

/// Revoke tokens before they expire: at once on this server, within seconds on others
#[derive(Debug, Args)]
struct RevokeToken {
    /// Read the token from stdin
    #[arg(long, conflicts_with_all = ["jti", "all"])]
    stdin: bool,
    /// The token with this id, as `rcrt token list` shows it (its claim `jti`)
    #[arg(long, value_name = "ID", conflicts_with = "all", value_parser = id)]
    jti: Option<Uuid>,
    /// Every token of the agent that was issued so far
    #[arg(long)]
    all: bool,
    /// The agent's name or id, with --jti or --all [default with --jti: the agent of the listed
    /// token]. A token that is not listed is only revoked by --jti if its agent is named
    #[arg(long, value_name = "AGENT", conflicts_with = "stdin")]
    agent: Option<String>,
}

impl RevokeToken {
    async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        if !self.stdin && self.jti.is_none() && !self.all {
            fail!(Usage, "name the tokens with --stdin, --jti ID or --all");
        }
        if self.all && self.agent.is_none() {
            fail!(
                Usage,
                "--all revokes every token of an agent, also the one of this command; name the agent with --agent"
            );
        }
        let token = if self.stdin {
            Some(spawn_blocking(|| input::secret("Token")).await.context("reading the token failed")??)
        } else {
            None
        };
        let client = connection::client(config)?;
        let agent_id = agent::id_of(&client, self.agent.as_deref()).await?;
        let revoke = Revoke { token, jti: self.jti, agent_id, all: self.all };
        let done = client.revoke_tokens(&revoke).await.map_err(|error| match (error, self.jti) {
            (StoreError::NotFound { what: "token", .. }, Some(jti)) => anyhow::Error::from(Failure::NotFound(format!(
                "no unexpired token with id {jti} is listed (`rcrt token list`); to revoke one that is not listed yet, \
                 use --stdin, or also name its agent with --agent"
            ))),
            (error, _) => error.into(),
        })?;
        if output.is_json() {
            return output.json(&done);
        }
        match (done.jti, done.issued_before) {
            (Some(jti), _) if done.unlisted => output.line(&format!(
                "no token with id {jti} is listed; it will be refused if it is used as one of the agent {}",
                done.agent_id
            )),
            (Some(jti), _) => output.line(&format!("revoked the token {jti} of the agent {}", done.agent_id)),
            (None, before) => {
                let before = before.unwrap_or_default();
                output.line(&format!(
                    "revoked every token of the agent {} that was issued before {before}",
                    done.agent_id
                ))
            }
        }
    }
}

impl Token {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self.action {
            Some(Action::List(list)) => return list.run(config, output).await,
            Some(Action::Revoke(revoke)) => return revoke.run(config, output).await,
            None => {}
        }
        if let Some(name) = self.agent {
            let agent = NewAgent { name, roles: self.roles, profile: self.profile.unwrap_or_default(), tools: None };
            let made = connection::client(config)?.create_agent(agent).await?;
            return agent::print_key(output, &made);
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
        output.either(&json!({"token": token}), &token)
    }
}

/// Verifies the token with the data folder's key. `otherwise` is the error if there is no key.
fn verified(config: &Config, token: &str, otherwise: &str) -> anyhow::Result<(TokenKey, VerifiedToken)> {
    if !config.data.join("keys/token.key").is_file() {
        return Err(Failure::Refused(otherwise.into()).into());
    }
    let key = Keys::open(&config.data)?.token_key()?;
    let proven = key.verify(token).map_err(|error| {
        Failure::Refused(format!(
            "{error}; the token was not issued with the keys of the data folder {}",
            config.data.display()
        ))
    })?;
    Ok((key, proven))
}

fn left(proven: &VerifiedToken) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Duration::from_secs(proven.expires_at.saturating_sub(now))
}

/// Issues the token with operator rights, signed with the data folder's key. It expires when the
/// original does.
fn for_operator(config: &Config, token: &str) -> anyhow::Result<String> {
    let (key, proven) = verified(
        config,
        token,
        "an operator token can only be created on the server's machine, with its data folder (--data)",
    )?;
    if !proven.identity.has(Role::Curator) {
        fail!(
            Refused,
            "an operator token can only be created from a curator's token, such as the one in the data folder"
        );
    }
    Ok(key.issue_for_operator(&proven.identity, left(&proven))?)
}

/// Issues the token with another profile, signed with the data folder's key. It expires when the
/// original does.
fn narrowed(config: &Config, token: &str, profile: Profile) -> anyhow::Result<String> {
    let otherwise = "a token for another profile can only be created with an agent's key (--owner-id, --agent-id, \
                     --agent-key), or on the server's machine with its data folder (--data)";
    let (key, proven) = verified(config, token, otherwise)?;
    let left = left(&proven);
    let mut identity = proven.identity;
    if identity.profile != Profile::Main && identity.profile != profile {
        fail!(Refused, "the token has the profile {} and cannot get another one", identity.profile);
    }
    identity.profile = profile;
    Ok(key.issue(&identity, left)?)
}
