//! `rcrt agent`: the agents of the tenant, their keys and their roles, and which tools they can
//! call.

use anyhow::Context;
use clap::{Args, Subcommand};
use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, AllowedTools, AllowedToolsChange, MAX_TOKENS, NewAgent, NewAgentKey, Profile, Role,
    TokenInfo, TokenQuery, ToolSource, nearest_names,
};
use rcrt_client::{Client, Revoke};
use serde_json::json;
use uuid::Uuid;

use crate::config::Config;
use crate::connection;
use crate::exit::{Failure, fail};
use crate::output::{Output, one_line};

/// Manage agents, their keys, their roles and the tools that they can call
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
An agent is named by its name or its id. An agent with the role caller calls tools and reads its own requests and their \
responses, nothing else. With --tool, --source or --tag it can call only these tools.

Examples:
  rcrt agent new bot --role caller --tool calculator --tag weather
  rcrt agent set bot --tool calculator --source mcp:files     (replaces the whole list)
  rcrt agent set bot --all-tools
  rcrt agent rotate-key bot --revoke-tokens
  rcrt agent list -o json")]
pub enum Agent {
    /// List the agents
    List,
    /// Show an agent and its tokens
    Show {
        /// The agent's name or id
        agent: String,
    },
    New(New),
    Set(Set),
    RotateKey(RotateKey),
    /// Delete an agent; its key and its tokens become invalid
    Delete {
        /// The agent's name or id
        agent: String,
    },
}

/// Create an agent and print its key once
#[derive(Debug, Args)]
pub struct New {
    /// The name, unique in the tenant
    name: String,
    /// A role: curator, emitter, subscriber, runner or caller. Can be repeated, or separated by
    /// commas
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',', required = true)]
    roles: Vec<Role>,
    /// The profile: main, subagent, scheduled or a2asynthesis
    #[arg(long, value_name = "PROFILE", default_value_t)]
    profile: Profile,
    #[command(flatten)]
    list: List,
}

/// The allow list of a caller. Without these options it can call every tool.
#[derive(Debug, Args)]
struct List {
    /// A tool that a caller can call, by its name. Can be repeated
    #[arg(long = "tool", value_name = "NAME")]
    names: Vec<String>,
    /// A source whose tools a caller can call: native, sandbox, rest, mcp or mcp:SERVER. Can be
    /// repeated
    #[arg(long = "source", value_name = "SOURCE")]
    sources: Vec<String>,
    /// A tag of the tools that a caller can call. Can be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

/// Change an agent's name, its roles, its profile or its allow list
#[derive(Debug, Args)]
pub struct Set {
    /// The agent's name or id
    agent: String,
    /// The new name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A role: curator, emitter, subscriber, runner or caller. Replaces all roles. Can be repeated,
    /// or separated by commas
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',')]
    roles: Vec<Role>,
    /// The profile: main, subagent, scheduled or a2asynthesis. A restricted one also applies to the
    /// agent's existing tokens
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    #[command(flatten)]
    list: List,
    /// Let the agent call every tool
    #[arg(long, conflicts_with_all = ["names", "sources", "tags"])]
    all_tools: bool,
}

/// Give an agent a new key and print it once; the old key becomes invalid
#[derive(Debug, Args)]
pub struct RotateKey {
    /// The agent's name or id
    agent: String,
    /// Also revoke every token that was issued to the agent so far
    #[arg(long)]
    revoke_tokens: bool,
}

impl List {
    /// `None` without any entry.
    fn allowed(self) -> Option<AllowedTools> {
        let list = AllowedTools { names: self.names, sources: self.sources, tags: self.tags };
        (list != AllowedTools::default()).then_some(list)
    }
}

impl Agent {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        match self {
            Self::List => list(&client, output).await,
            Self::Show { agent } => show(&client, output, &agent).await,
            Self::New(new) => new.run(&client, output).await,
            Self::Set(set) => set.run(&client, output).await,
            Self::RotateKey(rotate) => rotate.run(&client, output).await,
            Self::Delete { agent } => delete(&client, output, &agent).await,
        }
    }
}

/// The agent with this name, or with this id if no agent has it as its name.
async fn find(client: &Client, named: &str) -> anyhow::Result<AgentInfo> {
    let mut agents = client.agents().await?;
    let id = named.parse::<Uuid>().ok();
    let at = agents.iter().position(|agent| agent.name == named);
    let at = at.or_else(|| agents.iter().position(|agent| Some(agent.id) == id));
    let missing = || Failure::NotFound(format!("no agent has the name or id {named:?}; `rcrt agent list` shows them"));
    Ok(agents.swap_remove(at.ok_or_else(missing)?))
}

/// The id of an agent that an option names by its name or its id. Only curators can look up names.
pub(super) async fn id_of(client: &Client, named: Option<&str>) -> anyhow::Result<Option<Uuid>> {
    let Some(named) = named else { return Ok(None) };
    if let Ok(id) = named.parse() {
        return Ok(Some(id));
    }
    let found = find(client, named).await;
    found.map(|agent| Some(agent.id)).with_context(|| format!("the agent {named:?} cannot be found by its name"))
}

fn roles(agent: &AgentInfo) -> String {
    agent.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(",")
}

fn tools(agent: &AgentInfo) -> String {
    agent.tools.as_ref().map_or_else(|| "all".into(), AllowedTools::to_string)
}

async fn list(client: &Client, output: Output) -> anyhow::Result<()> {
    output.list(&client.agents().await?, &["ID", "NAME", "ROLES", "PROFILE", "TOOLS"], |agent| {
        let tools = one_line(&tools(agent), 80);
        vec![agent.id.to_string(), one_line(&agent.name, 40), roles(agent), agent.profile.to_string(), tools]
    })
}

async fn show(client: &Client, output: Output, named: &str) -> anyhow::Result<()> {
    let agent = find(client, named).await?;
    let query = TokenQuery { agent_id: Some(agent.id), limit: MAX_TOKENS, ..TokenQuery::default() };
    let tokens = client.tokens(&query).await?;
    if output.is_json() {
        return output.json(&json!({"agent": agent, "tokens": tokens}));
    }
    line(output, "id", &agent.id.to_string())?;
    line(output, "name", &one_line(&agent.name, 200))?;
    line(output, "roles", &roles(&agent))?;
    line(output, "profile", agent.profile.as_str())?;
    line(output, "tools", &one_line(&tools(&agent), 2000))?;
    line(output, "created", &agent.created_at.format("%Y-%m-%d %H:%M:%S").to_string())?;
    if tokens.is_empty() {
        return line(output, "tokens", "none");
    }
    output.line("")?;
    token_table(output, &tokens)
}

fn line(output: Output, what: &str, value: &str) -> anyhow::Result<()> {
    output.line(&format!("{what:<9}{value}"))
}

/// Tokens with their last use, for this command and `rcrt token list`.
pub(super) fn token_table(output: Output, tokens: &[TokenInfo]) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = tokens
        .iter()
        .map(|token| {
            let time = |time: chrono::DateTime<chrono::Utc>| time.format("%Y-%m-%d %H:%M").to_string();
            let agent = token.agent_name.clone().unwrap_or_else(|| token.agent_id.to_string());
            vec![
                token.number.to_string(),
                token.id.to_string(),
                one_line(&agent, 40),
                time(token.issued_at),
                time(token.expires_at),
                token.last_used_at.map_or_else(|| "never".into(), time),
                if token.revoked { "revoked" } else { "valid" }.into(),
            ]
        })
        .collect();
    output.table(&["NUMBER", "ID", "AGENT", "ISSUED (UTC)", "EXPIRES", "LAST USED", "STATE"], &rows)
}

/// The key in the form in which the commands read it.
pub(super) fn print_key(output: Output, made: &NewAgentKey) -> anyhow::Result<()> {
    if output.is_json() {
        return output.json(made);
    }
    output.line(&format!("RCRT_OWNER_ID={}", made.agent.owner_id))?;
    output.line(&format!("RCRT_AGENT_ID={}", made.agent.id))?;
    output.line(&format!("RCRT_AGENT_KEY={}", made.agent_key))
}

/// Warns of names and sources on an allow list that no tool has: a mistake, or a tool that comes
/// later.
async fn warn_of_unknown(client: &Client, list: &AllowedTools, output: Output) -> anyhow::Result<()> {
    let AllowedTools { names, sources, .. } = list;
    if names.is_empty() && sources.is_empty() {
        return Ok(());
    }
    let catalog = client.tools().await?;
    let is_other = |source: &&String| matches!(source.parse(), Ok(ToolSource::Other(_)));
    let has = |source: &str| catalog.tools.iter().any(|tool| tool.source.kind() == source);
    for source in sources.iter().filter(is_other).filter(|source| !has(source)) {
        let known = "native, sandbox, rest, mcp and mcp:SERVER";
        output.note(&format!("warning: no tool has the source {source} now; the sources are {known}"));
    }
    for name in names.iter().filter(|name| catalog.entry(name).is_none()) {
        let nearest = nearest_names(name, catalog.names());
        let hint = if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", nearest.join(" or ")) };
        output.note(&format!("warning: there is no tool named {name} now{hint}"));
    }
    Ok(())
}

impl New {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let agent = NewAgent { name: self.name, roles: self.roles, profile: self.profile, tools: self.list.allowed() };
        let tools = agent.tools.clone().unwrap_or_default();
        print_key(output, &client.create_agent(agent).await?)?;
        warn_of_unknown(client, &tools, output).await
    }
}

impl Set {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let listed = self.list.allowed();
        let is_kept = self.name.is_none() && self.roles.is_empty() && self.profile.is_none();
        if is_kept && listed.is_none() && !self.all_tools {
            fail!(Usage, "name what to change: --name, --role, --profile, --tool, --source, --tag or --all-tools");
        }
        let named = listed.clone().unwrap_or_default();
        let agent = find(client, &self.agent).await?;
        let roles = if self.roles.is_empty() { agent.roles } else { self.roles };
        let tools = if self.all_tools {
            AllowedToolsChange::All
        } else {
            listed.map_or(AllowedToolsChange::None, AllowedToolsChange::Only)
        };
        let change = AgentRegistration { roles, name: self.name, profile: self.profile, tools };
        client.put_agent(agent.id, &change).await?;
        let changed = client.agent(agent.id).await?;
        warn_of_unknown(client, &named, output).await?;
        if output.is_json() {
            return output.json(&changed);
        }
        let (roles, tools) = (self::roles(&changed), self::tools(&changed));
        let (name, profile) = (one_line(&changed.name, 200), changed.profile);
        output.line(&format!("changed the agent {name}: roles {roles}; profile {profile}; tools: {tools}"))
    }
}

impl RotateKey {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let agent = find(client, &self.agent).await?;
        let made = client.rotate_agent_key(agent.id).await?;
        print_key(output, &made)?;
        if self.revoke_tokens {
            client.revoke_tokens(&Revoke { agent_id: Some(agent.id), all: true, ..Revoke::default() }).await?;
        }
        Ok(())
    }
}

async fn delete(client: &Client, output: Output, named: &str) -> anyhow::Result<()> {
    let agent = find(client, named).await?;
    client.delete_agent(agent.id).await?;
    output.either(
        &json!({"deleted": agent.id, "name": agent.name}),
        &format!("deleted the agent {} ({})", one_line(&agent.name, 200), agent.id),
    )
}
