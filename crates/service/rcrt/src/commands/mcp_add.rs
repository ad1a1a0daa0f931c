//! `rcrt mcp add`: shows what will run, then writes the record.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use rcrt_mcp::{Auth, ServerConfig, Transport, config_file, server_record};
use serde_json::json;
use url::Url;

use super::mcp_state::servers;
use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::output::Output;

/// Add an MCP server, or those of a configuration file
#[derive(Debug, Args)]
#[command(after_long_help = "\
The command runs in a jail on the machine of each runner, in a working folder of its own, without the runner's \
environment, and without a network unless --network is given. It sees the programs of the machine, and the folders that \
the operator names with --mcp-folder. A URL is reached through the egress gate; a private address also needs \
--allow-private-host.

A secret is written as ${NAME} in --env and --header. Create it with `rcrt secret set` (with --readable for a program, \
with --host for a URL), and grant it with `rcrt secret grant NAME mcp:SERVER`.

Examples:
  rcrt mcp add time -- mcp-server-time --local-timezone Europe/Berlin
  rcrt mcp add github --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' --network -- npx -y @example/mcp-server-github
  rcrt mcp add docs --url https://mcp.example.com/mcp --bearer DOCS_TOKEN
  rcrt mcp add --file claude_desktop_config.json --yes")]
pub struct Add {
    /// The name of the server, the first part of its tools' names
    #[arg(required_unless_present = "file")]
    name: Option<String>,
    /// The command and its arguments, after --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// The URL of a server of streamable HTTP
    #[arg(long, conflicts_with = "command")]
    url: Option<Url>,
    /// A configuration file with mcpServers, or with Mcp.Servers
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "command", "url", "env", "headers", "bearer"])]
    file: Option<PathBuf>,
    /// A variable of the program's environment. Can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Let the program use the machine's network, without the rules of the egress gate
    #[arg(long)]
    network: bool,
    /// A header field of each request. Can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// The name of the secret that is sent as Authorization: Bearer
    #[arg(long, value_name = "SECRET")]
    bearer: Option<String>,
    /// What the server is for
    #[arg(long)]
    description: Option<String>,
    /// Register only this tool. Can be repeated
    #[arg(long = "allow", value_name = "TOOL")]
    allowed: Vec<String>,
    /// Do not register this tool. Can be repeated
    #[arg(long = "deny", value_name = "TOOL")]
    denied: Vec<String>,
    /// Time of one call, in milliseconds [default: 60000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(100..=900_000))]
    timeout_ms: Option<u64>,
    /// Time to connect, and to list the tools, in milliseconds [default: 30000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(100..=300_000))]
    connect_timeout_ms: Option<u64>,
    /// Attempts of a call whose connection broke, if the tool says that a repeat has no further
    /// effect [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=10))]
    max_attempts: Option<u32>,
    /// Memory of the program and its children, in MiB [default: 2048]
    #[arg(long, value_name = "MB", conflicts_with = "url", value_parser = clap::value_parser!(u64).range(64..=65_536))]
    memory_mb: Option<u64>,
    /// How forms are answered that the server sends for a person during a call [default: decline]
    #[arg(long, value_name = "HOW", value_parser = ["decline", "defaults", "ask"])]
    elicitation: Option<String>,
    /// Write the records without asking
    #[arg(long)]
    yes: bool,
}

fn usage(message: impl Into<String>) -> anyhow::Error {
    Failure::Usage(message.into()).into()
}

/// Splits `NAME=VALUE` and `NAME: VALUE`.
fn pairs(option: &str, texts: &[String], separator: char) -> anyhow::Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let (name, value) = text
            .split_once(separator)
            .ok_or_else(|| usage(format!("{option}: {text:?} has no {separator:?} after the name")))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    texts.iter().map(pair).collect()
}

impl Add {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let added = self.servers()?;
        let store = connection::store(config)?;
        let known = servers(&*store).await?;
        for server in &added {
            if known.iter().any(|known| known.config.name.eq_ignore_ascii_case(&server.name)) {
                let name = &server.name;
                return Err(usage(format!(
                    "there is already an MCP server {name}; remove it first with `rcrt mcp remove {name}`"
                )));
            }
        }
        for server in &added {
            describe(output, server);
        }
        if !self.yes && !confirmed(output)? {
            return Err(usage("nothing was written; repeat it with --yes"));
        }
        let mut written = Vec::new();
        for server in &added {
            let id = store.create(server_record(server), None).await?.id;
            written.push(json!({"name": server.name, "id": id}));
            if !output.is_json() {
                output.line(&format!("{} added; see `rcrt mcp show {}`", server.name, server.name))?;
            }
        }
        if output.is_json() { output.json(&written) } else { Ok(()) }
    }

    fn servers(&self) -> anyhow::Result<Vec<ServerConfig>> {
        let mut servers = match &self.file {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| usage(format!("--file: {} cannot be read: {error}", file.display())))?;
                config_file::read(&text).map_err(|violations| usage(format!("{}: {violations}", file.display())))?
            }
            None => vec![ServerConfig::new(self.name.clone().unwrap_or_default(), self.transport()?)],
        };
        for server in &mut servers {
            if self.description.is_some() {
                server.description.clone_from(&self.description);
            }
            if !self.allowed.is_empty() {
                server.allowed_tools = Some(self.allowed.clone());
            }
            server.denied_tools.extend(self.denied.iter().cloned());
            server.tool_timeout_ms = self.timeout_ms.unwrap_or(server.tool_timeout_ms);
            server.connect_timeout_ms = self.connect_timeout_ms.unwrap_or(server.connect_timeout_ms);
            server.max_attempts = self.max_attempts.unwrap_or(server.max_attempts);
            if let Some(how) = &self.elicitation {
                server.elicitation = serde_json::from_value(json!(how))?;
            }
            if let Transport::Stdio { network, memory_mb, .. } = &mut server.transport {
                *network |= self.network;
                *memory_mb = self.memory_mb.unwrap_or(*memory_mb);
            }
            server.check().map_err(|violations| usage(violations.to_string()))?;
        }
        Ok(servers)
    }

    fn transport(&self) -> anyhow::Result<Transport> {
        let headers = pairs("--header", &self.headers, ':')?;
        match (&self.url, self.command.split_first()) {
            (Some(url), None) => {
                let auth = self.bearer.clone().map(|secret| Auth::Bearer { secret });
                Ok(Transport::Http { url: url.clone(), headers, auth })
            }
            (None, Some((command, args))) => {
                if self.bearer.is_some() || !headers.is_empty() {
                    return Err(usage("--header and --bearer are for --url; give a program its secret with --env"));
                }
                let transport = json!({
                    "type": "stdio",
                    "command": command,
                    "args": args,
                    "env": pairs("--env", &self.env, '=')?,
                    "network": self.network,
                });
                Ok(serde_json::from_value(transport)?)
            }
            _ => Err(usage("name what to connect to: a command after --, --url, or --file")),
        }
    }
}

/// Shows what will run, and warns. It is on stderr, so that warnings are seen with every output.
fn describe(output: Output, server: &ServerConfig) {
    output.note(&format!("{} runs: {}", server.name, server.transport.describe()));
    for name in config_file::plain_secrets(server) {
        eprintln!(
            "warning: {}: the value of {name} looks like a secret, and everybody who reads the record sees it; write \
             ${{SECRET_NAME}} and create the secret with `rcrt secret set`",
            server.name
        );
    }
    for secret in server.transport.secrets() {
        eprintln!("note: grant its secret with `rcrt secret grant {secret} mcp:{}`", server.name);
    }
}

/// Asks on a terminal. Elsewhere only `--yes` is consent.
fn confirmed(output: Output) -> anyhow::Result<bool> {
    if output.is_json() || !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("Add it? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
