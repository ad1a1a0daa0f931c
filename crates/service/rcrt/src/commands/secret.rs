//! `rcrt secret`: secrets, their hosts, and which tools can use them. Values come from stdin, never
//! from the command line.

use anyhow::Context;
use clap::{Args, Subcommand};
use rcrt_breadcrumb::{MIN_OPAQUE_BYTES, NewSecret, Records, SecretChanges, SecretInfo, Secrets, schema_names};
use serde_json::json;
use uuid::Uuid;

use crate::config::Config;
use crate::exit::{Failure, fail};
use crate::output::{Output, one_line};
use crate::{connection, input, seed};

/// Manage secrets, and which tools can use them
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
A tool gets a handle instead of a secret's value. The runner replaces the handle with the value in requests to the hosts \
that the secret is bound to, and removes the value from responses. A tool can use a secret only if the secret is granted \
to the tool's record; naming it in required_secrets is not enough.

Examples:
  rcrt secret set WEATHER_KEY --host api.example.com     (asks for the value, without showing it)
  rcrt secret set WEATHER_KEY < key.txt                      (a new value; keeps hosts and grants)
  rcrt secret set WEATHER_KEY --keep-value --host api.example.com --host eu.example.com:8443
  rcrt secret grant WEATHER_KEY weather
  rcrt secret grant DOCS_TOKEN mcp:docs                      (to the MCP server docs)
  rcrt secret revoke WEATHER_KEY weather
  rcrt secret set SIGNING_KEY --readable                     (the tools' code gets the value itself)
  rcrt secret list")]
pub enum Secret {
    Set(Set),
    /// Let a tool use a secret, as long as the tool's record exists
    Grant {
        name: String,
        /// The tool's name, or the id of its record; mcp:NAME for an MCP server
        tool: String,
    },
    /// Stop a tool from using a secret, from its next call on
    Revoke {
        name: String,
        /// The tool's name, or the id of its record; mcp:NAME for an MCP server
        tool: String,
    },
    /// List names, hosts and tools; values are never shown
    List,
    /// Delete a secret and its grants
    Delete {
        name: String,
    },
}

/// Create a secret, or change its value, its hosts, or whether tools can read it
#[derive(Debug, Args)]
pub struct Set {
    /// The name: a letter or _, then letters, digits and _
    name: String,
    /// A host that the value can be sent to: api.example.com, api.example.com:8443 or
    /// *.example.com. Can be repeated. Replaces all earlier hosts
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Remove all hosts
    #[arg(long, conflicts_with = "hosts")]
    no_host: bool,
    /// Give the value itself to the code of the tools that can use it
    #[arg(long, conflicts_with = "not_readable")]
    readable: bool,
    /// Give tools a handle again instead of the value
    #[arg(long)]
    not_readable: bool,
    /// Keep the value, and change only what other options name
    #[arg(long)]
    keep_value: bool,
}

impl Secret {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self {
            Self::Set(set) => set.run(config, output).await,
            Self::Grant { name, tool } => grant(config, output, &name, &tool).await,
            Self::Revoke { name, tool } => revoke(config, output, &name, &tool).await,
            Self::List => list(config, output).await,
            Self::Delete { name } => delete(config, output, &name).await,
        }
    }
}

impl Set {
    async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        self.check()?;
        let store = connection::store(config)?;
        let known = find(&*store, &self.name).await?;
        // An existing secret can have a name from RCRT's clients.
        if known.is_none() && !self.keep_value {
            self.example().check_for_tools().map_err(|violations| Failure::Usage(violations.to_string()))?;
        }
        let value = match (&known, self.keep_value) {
            (None, true) => return Err(missing(&self.name).into()),
            (Some(_), true) => None,
            (_, false) => Some(self.value().await?),
        };
        let (secret, what) = match (known, value) {
            (Some(secret), value) => (store.update_secret(secret.id, self.changes(value)).await?, "changed"),
            (None, value) => (store.create_secret(self.new_secret(value.unwrap_or_default())).await?, "created"),
        };
        show(output, &secret, what)
    }

    /// Checks the options before asking for the value, so that an invalid option is reported first.
    fn check(&self) -> Result<(), Failure> {
        let names_nothing = self.hosts.is_empty() && !self.no_host && !self.readable && !self.not_readable;
        if self.keep_value && names_nothing {
            fail!(
                Usage,
                "--keep-value changes nothing by itself: name --host, --no-host, --readable or --not-readable"
            );
        }
        self.example().check().map_err(|violations| Failure::Usage(violations.to_string()))
    }

    /// The secret with another value, to check its other fields.
    fn example(&self) -> NewSecret {
        self.new_secret("x".repeat(MIN_OPAQUE_BYTES))
    }

    async fn value(&self) -> anyhow::Result<String> {
        let prompt = format!("Value of {}", self.name);
        // The prompt blocks, so it runs on a blocking thread.
        tokio::task::spawn_blocking(move || input::secret(&prompt)).await.context("reading the value failed")?
    }

    fn new_secret(&self, value: String) -> NewSecret {
        NewSecret { hosts: self.hosts.clone(), readable: self.readable, ..NewSecret::new(self.name.clone(), value) }
    }

    fn changes(&self, value: Option<String>) -> SecretChanges {
        let hosts = (self.no_host || !self.hosts.is_empty()).then(|| self.hosts.clone());
        let readable = (self.readable || self.not_readable).then_some(self.readable);
        SecretChanges { value, hosts, readable, ..SecretChanges::default() }
    }
}

async fn grant(config: &Config, output: Output, name: &str, tool: &str) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let secret = find(&*store, name).await?.ok_or_else(|| missing(name))?;
    let tool_id = tool_record(&*store, tool).await?;
    show(output, &store.grant_secret(secret.id, tool_id).await?, "granted")
}

async fn revoke(config: &Config, output: Output, name: &str, tool: &str) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let secret = find(&*store, name).await?.ok_or_else(|| missing(name))?;
    let ids: Vec<Uuid> = secret
        .tools
        .iter()
        .filter(|granted| granted.tool == tool || granted.tool_id.to_string() == tool)
        .map(|granted| granted.tool_id)
        .collect();
    if ids.is_empty() {
        fail!(NotFound, "{name} is not granted to {tool}; see `rcrt secret list`");
    }
    let id = one_record(tool, &ids)?;
    show(output, &store.revoke_secret(secret.id, id).await?, "revoked")
}

async fn list(config: &Config, output: Output) -> anyhow::Result<()> {
    let secrets = connection::store(config)?.secrets().await?;
    output.list(&secrets, &["NAME", "VERSION", "HOSTS", "READABLE", "TOOLS", "CHANGED", "ID"], |one| {
        let changed = one.updated_at.format("%Y-%m-%d %H:%M:%S UTC").to_string();
        vec![
            one.name.clone(),
            one.version.to_string(),
            listed(&one.hosts),
            if one.readable { "yes" } else { "no" }.to_owned(),
            tools(one),
            changed,
            one.id.to_string(),
        ]
    })
}

async fn delete(config: &Config, output: Output, name: &str) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let secret = find(&*store, name).await?.ok_or_else(|| missing(name))?;
    store.delete_secret(secret.id).await?;
    output.either(&json!({"deleted": secret.id, "name": secret.name}), &format!("{name} deleted"))
}

/// Prints what was done, and the secret's new state.
fn show(output: Output, secret: &SecretInfo, what: &str) -> anyhow::Result<()> {
    if secret.readable {
        eprintln!("warning: {} is readable: the code of every tool that can use it gets the value", secret.name);
    } else if secret.hosts.is_empty() {
        eprintln!(
            "warning: no tool can use {name}: it is bound to no host and not readable; run `rcrt secret set {name} \
             --keep-value --host HOST`, or --readable instead of --host",
            name = secret.name
        );
    }
    if output.is_json() {
        return output.json(secret);
    }
    let SecretInfo { name, version, .. } = secret;
    output.line(&format!(
        "{name} {what} (version {version}; hosts: {}; tools: {})",
        listed(&secret.hosts),
        tools(secret)
    ))
}

fn tools(secret: &SecretInfo) -> String {
    let names: Vec<String> = secret.tools.iter().map(|granted| one_line(&granted.tool, 40)).collect();
    listed(&names)
}

fn listed(words: &[String]) -> String {
    if words.is_empty() { "none".into() } else { words.join(", ") }
}

fn missing(name: &str) -> Failure {
    Failure::NotFound(format!("there is no secret named {name}; see `rcrt secret list`"))
}

async fn find(store: &dyn Secrets, name: &str) -> anyhow::Result<Option<SecretInfo>> {
    Ok(store.secrets().await?.into_iter().find(|secret| secret.name == name))
}

/// Finds a tool's record by its id, or by a name that no other tool has.
async fn tool_record(store: &dyn Records, tool: &str) -> anyhow::Result<Uuid> {
    if let Ok(id) = Uuid::try_parse(tool) {
        return Ok(id);
    }
    if let Some(server) = tool.strip_prefix("mcp:") {
        return super::mcp::find(store, server).await.map(|server| server.id);
    }
    let mut ids = Vec::new();
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        ids.extend(seed::tools_named(store, schema, tool).await?.into_iter().map(|item| item.id));
    }
    if ids.is_empty() {
        fail!(NotFound, "there is no tool named {tool}; see them with `rcrt tool list`");
    }
    Ok(one_record(tool, &ids)?)
}

/// Refuses an ambiguous name: another agent can have written a record of that name.
fn one_record(tool: &str, ids: &[Uuid]) -> Result<Uuid, Failure> {
    match ids {
        [one] => Ok(*one),
        several => {
            let ids: Vec<String> = several.iter().map(ToString::to_string).collect();
            let what = format!("{tool} is the name of several records; use the id of one: {}", ids.join(", "));
            Err(Failure::Usage(what))
        }
    }
}
