//! `rcrt token`: the token at hand, a token for an agent's key, or a new agent with a key.

use breadcrumb::{NewAgent, Role};
use clap::Args;
use client::Credentials;
use serde_json::json;

use crate::config::Config;
use crate::connection;
use crate::output::Output;

/// Print the access token, or make an agent that gets its own
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without options it prints the token that the other commands use. With --owner-id, --agent-id and --agent-key (or \
RCRT_OWNER_ID, RCRT_AGENT_ID, RCRT_AGENT_KEY) it exchanges the key for a token. With --agent it makes an agent and \
shows its key, this once.

Examples:
  curl -H \"Authorization: Bearer $(rcrt token)\" http://127.0.0.1:8081/breadcrumbs
  rcrt token --agent dashboard --role subscriber")]
pub struct Token {
    /// Make an agent of this name
    #[arg(long, value_name = "NAME", requires = "roles")]
    agent: Option<String>,
    /// What the agent may: curator, emitter, subscriber or runner (again for more, or with commas)
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',', requires = "agent")]
    roles: Vec<Role>,
}

impl Token {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self.agent {
            Some(name) => {
                let made = connection::client(config)?.create_agent(NewAgent { name, roles: self.roles }).await?;
                if output.is_json() {
                    return output.json(&made);
                }
                output.line(&format!("RCRT_OWNER_ID={}", made.agent.owner_id))?;
                output.line(&format!("RCRT_AGENT_ID={}", made.agent.id))?;
                output.line(&format!("RCRT_AGENT_KEY={}", made.agent_key))
            }
            None => {
                let token = match config.credentials()? {
                    Credentials::Token(token) => token,
                    Credentials::AgentKey { .. } => connection::client(config)?.token().await?,
                };
                if output.is_json() { output.json(&json!({"token": token})) } else { output.line(&token) }
            }
        }
    }
}
