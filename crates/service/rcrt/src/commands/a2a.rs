//! `rcrt a2a`: other agents, which tools ask by the protocol A2A.

use clap::{Args, Subcommand};
use rcrt_a2a::{KnownAgent, accept_card, agents, remove_agent};
use rcrt_breadcrumb::{Breadcrumbs, Records, StoreError};
use serde_json::{Value, json};
use url::Url;

use super::a2a_state;
use super::tool_output::tool_output;
use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::output::Output;

/// Use other agents by the protocol A2A
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
An agent is known by its card, which a runner reads through the egress gate: at once, every four hours, and with \
`refresh`. A card that the agent changes later waits until a curator accepts it; until then the old one counts. Only \
curators add and remove agents and accept cards.

Examples:
  rcrt a2a add https://agent.example.com --name research --secret RESEARCH_TOKEN
  rcrt a2a list
  rcrt a2a show research
  rcrt a2a refresh research
  rcrt a2a diff research
  rcrt a2a accept research
  rcrt a2a remove research
  rcrt call invoke_agent '{\"agent_name\": \"research\", \"message\": \"Hello\"}'")]
pub enum A2a {
    Add(Add),
    /// List the agents and their states
    List,
    /// Show one agent: its address, its state, and its skills
    Show {
        name: String,
    },
    /// Remove an agent
    Remove {
        name: String,
    },
    /// Read the card of an agent again, by a runner, and say whether it has changed
    Refresh {
        name: String,
    },
    /// Show the changed card of an agent that waits
    Diff {
        name: String,
    },
    /// Accept the changed card of an agent, which `rcrt a2a diff` shows
    Accept {
        name: String,
    },
}

/// Add an agent: a runner reads its card
#[derive(Debug, Args)]
#[command(after_long_help = "\
The card is read from public addresses; a private one also needs --allow-private-host invoke_agent=HOST:PORT. A secret \
must be bound to the agent's host and granted: `rcrt secret set NAME --host HOST`, `rcrt secret grant NAME \
invoke_agent`.

Examples:
  rcrt a2a add https://agent.example.com
  rcrt a2a add https://agent.example.com --name research --secret RESEARCH_KEY --header X-API-Key")]
pub struct Add {
    /// The URL of the agent or of its card
    url: Url,
    /// Its name here [default: that in its card]
    #[arg(long)]
    name: Option<String>,
    /// The name of the secret that its requests have
    #[arg(long, value_name = "SECRET")]
    secret: Option<String>,
    /// The header field with the secret [default: Authorization, as Bearer]
    #[arg(long, value_name = "NAME", requires = "secret")]
    header: Option<String>,
}

impl A2a {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let store = connection::store(config)?;
        match self {
            Self::Add(add) => add.run(&*store, output).await,
            Self::List => list(&*store, output).await,
            Self::Show { name } => {
                let known = find(&*store, &name).await?;
                if output.is_json() { output.json(&known) } else { a2a_state::print(output, &known) }
            }
            Self::Remove { name } => remove(&*store, output, &name).await,
            Self::Refresh { name } => refresh(&*store, output, &name).await,
            Self::Diff { name } => diff(&*store, output, &name).await,
            Self::Accept { name } => accept(&*store, output, &name).await,
        }
    }
}

impl Add {
    async fn run(self, store: &dyn Breadcrumbs, output: Output) -> anyhow::Result<()> {
        let Self { url, name, secret, header } = self;
        let fields = [("name", name), ("auth_secret", secret), ("auth_header", header)];
        let mut input = json!({"url": url.as_str()});
        for (field, value) in fields {
            if let Some(value) = value {
                input[field] = value.into();
            }
        }
        let added = tool_output(store, output, "register_agent", input).await?;
        if output.is_json() {
            return output.json(&added);
        }
        let name = added["agentName"].as_str().unwrap_or_default();
        output.line(&format!("{name} added; see `rcrt a2a show {name:?}`"))
    }
}

/// The agent with this name, in any case.
async fn find(store: &(impl Records + ?Sized), name: &str) -> anyhow::Result<KnownAgent> {
    let mut known = agents(store).await?;
    if let Some(at) = known.iter().position(|known| known.agent.name.eq_ignore_ascii_case(name)) {
        return Ok(known.swap_remove(at));
    }
    let names: Vec<&str> = known.iter().map(|known| known.agent.name.as_str()).collect();
    let known =
        if names.is_empty() { "there are none".to_owned() } else { format!("the agents are {}", names.join(", ")) };
    Err(Failure::NotFound(format!("there is no agent named {name}; {known}")).into())
}

async fn list(store: &dyn Breadcrumbs, output: Output) -> anyhow::Result<()> {
    output.list(&agents(store).await?, &["NAME", "STATE", "SKILLS", "LAST SEEN", "URL"], a2a_state::row)
}

async fn remove(store: &dyn Breadcrumbs, output: Output, name: &str) -> anyhow::Result<()> {
    let known = find(store, name).await?;
    if known.agent.well_known {
        output.note("a runner with this agent in its --well-known-agents adds it again");
    }
    let name = known.agent.name;
    remove_agent(store, &name).await?;
    output.either(&json!({"removed": known.id, "name": name}), &format!("{name} is removed"))
}

async fn refresh(store: &dyn Breadcrumbs, output: Output, name: &str) -> anyhow::Result<()> {
    let name = find(store, name).await?.agent.name;
    let found = tool_output(store, output, "refresh_agent_card", json!({"agent_name": name})).await?;
    if output.is_json() {
        return output.json(&found);
    }
    if found["changed"] != true {
        return output.line(&format!("the card of {name} has not changed"));
    }
    for difference in found["differences"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output.line(&format!("  {}", crate::output::one_line(difference, 500)))?;
    }
    output.line(&format!("the changed card of {name} waits; see `rcrt a2a diff {name:?}`"))
}

async fn diff(store: &dyn Breadcrumbs, output: Output, name: &str) -> anyhow::Result<()> {
    let agent = find(store, name).await?.agent;
    if output.is_json() {
        return output.json(&agent.pending);
    }
    match &agent.pending {
        None => output.line(&format!("no changed card of {} waits", agent.name)),
        Some(pending) => a2a_state::print_difference(output, &agent, pending),
    }
}

async fn accept(store: &dyn Breadcrumbs, output: Output, name: &str) -> anyhow::Result<()> {
    let known = find(store, name).await?;
    let name = &known.agent.name;
    let accepted = accept_card(store, &known).await.map_err(|error| match error {
        StoreError::VersionConflict { .. } => {
            anyhow::anyhow!("the record of {name} has just changed; see `rcrt a2a diff {name:?}` and repeat it")
        }
        other => other.into(),
    })?;
    if output.is_json() {
        return output.json(&json!({"name": name, "accepted": accepted}));
    }
    let what =
        if accepted { format!("the card of {name} is accepted") } else { format!("no changed card of {name} waits") };
    output.line(&what)
}
