//! `rcrt mcp`: MCP servers, whose tools are offered like any others, and the tools for MCP clients.

use clap::Subcommand;
use rcrt_breadcrumb::Records;
use serde_json::json;

use super::mcp_add::Add;
use super::mcp_changes::{Accept, Diff};
use super::mcp_install::Install;
use super::mcp_login::Login;
use super::mcp_serve::Serve;
use super::mcp_state::{self, ServerWithState, servers};
use super::tool_output::tool_output;
use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::output::{Output, counted, one_line};

/// Use the Model Context Protocol (MCP): tools of MCP servers, and the tools for MCP clients
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
A server is a program that runs in a jail, or a URL of streamable HTTP. Its tools are registered by the runners. A \
definition that the server changes later waits until a curator accepts it. Only curators add, change and remove servers.

Examples:
  rcrt mcp add time -- mcp-server-time --local-timezone Europe/Berlin
  rcrt mcp add docs --url https://mcp.example.com/mcp --bearer DOCS_TOKEN
  rcrt mcp add --file claude_desktop_config.json
  rcrt mcp list
  rcrt mcp show time
  rcrt mcp test time
  rcrt mcp login docs
  rcrt mcp diff time
  rcrt mcp accept time convert_time
  rcrt mcp remove time

The tools are also offered to MCP clients, over HTTP at /mcp, and to clients that start a program:
  rcrt mcp install claude
  rcrt mcp install codex --print
  rcrt mcp serve                              (a client starts this)")]
// Created once, at the start.
#[allow(clippy::large_enum_variant)]
pub enum Mcp {
    Add(Add),
    /// List the servers and their states
    List,
    /// Show one server: what is run, its state, and its tools
    Show {
        name: String,
    },
    /// List the tools of a server again, by a runner, and say whether that works
    Test {
        name: String,
    },
    /// Remove a server and its tools
    Remove {
        name: String,
    },
    Login(Login),
    Diff(Diff),
    Accept(Accept),
    Serve(Serve),
    Install(Install),
}

impl Mcp {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self {
            Self::Add(add) => add.run(config, output).await,
            Self::List => list(config, output).await,
            Self::Show { name } => show(config, output, &name).await,
            Self::Test { name } => test(config, output, &name).await,
            Self::Remove { name } => remove(config, output, &name).await,
            Self::Login(login) => login.run(config, output).await,
            Self::Diff(diff) => diff.run(config, output).await,
            Self::Accept(accept) => accept.run(config, output).await,
            Self::Serve(serve) => serve.run(config).await,
            Self::Install(install) => install.run(config, output),
        }
    }
}

/// The server with this name, in any case.
pub(super) async fn find(store: &(impl Records + ?Sized), name: &str) -> anyhow::Result<ServerWithState> {
    let mut servers = servers(store).await?;
    if let Some(at) = servers.iter().position(|server| server.config.name.eq_ignore_ascii_case(name)) {
        return Ok(servers.swap_remove(at));
    }
    let names: Vec<&str> = servers.iter().map(|server| server.config.name.as_str()).collect();
    let known =
        if names.is_empty() { "there are none".to_owned() } else { format!("the servers are {}", names.join(", ")) };
    Err(Failure::NotFound(format!("there is no MCP server named {name}; {known}")).into())
}

async fn list(config: &Config, output: Output) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let heading = ["NAME", "TRANSPORT", "STATE", "TOOLS", "WAITING", "PROTOCOL", "ERROR"];
    output.list(&servers(&*store).await?, &heading, mcp_state::row)
}

async fn show(config: &Config, output: Output, name: &str) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let server = find(&*store, name).await?;
    if output.is_json() { output.json(&server) } else { mcp_state::print(output, &server) }
}

/// Calls `mcp_get_service_details`, which a runner answers.
async fn test(config: &Config, output: Output, name: &str) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let server = find(&*store, name).await?.config;
    let input = json!({"server_name": server.name, "refresh": true});
    let found = tool_output(&*store, output, "mcp_get_service_details", input).await?;
    if output.is_json() {
        return output.json(&found);
    }
    let tools = found["tools"].as_array().map_or(0, Vec::len);
    output.line(&format!("{} works: {}", server.name, counted(tools as u64, "tool", "tools")))?;
    for refused in found["refused"].as_array().into_iter().flatten() {
        let text = |field: &str| one_line(refused[field].as_str().unwrap_or_default(), 600);
        output.line(&format!("not offered: {}: {}", text("tool"), text("reason")))?;
    }
    Ok(())
}

async fn remove(config: &Config, output: Output, name: &str) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let ServerWithState { id, config: server, .. } = find(&*store, name).await?;
    store.delete(id, None).await?;
    // A runner does this too. Without a runner, nothing may be left.
    rcrt_mcp::remove_server_records(&*store, &server.name).await?;
    output.either(&json!({"removed": id, "name": server.name}), &format!("{} and its tools are removed", server.name))
}
