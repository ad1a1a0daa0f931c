//! `rcrt mcp diff` and `rcrt mcp accept`: changed definitions, which wait for a curator.

use clap::Args;
use rcrt_breadcrumb::{BreadcrumbListItem, Records, StoreError};
use rcrt_mcp::{Change, accept_change, changes};
use serde_json::{Map, Value, json};

use super::mcp::find;
use super::tool_diff::{print_line, unified};
use crate::config::Config;
use crate::connection;
use crate::exit::fail;
use crate::output::{Output, Style, printable_lines};

/// Show the changed definitions of a server's tools that wait
#[derive(Debug, Args)]
#[command(after_long_help = "\
A server can change the definition of a tool at any time, including its description, which models read. Until a curator \
accepts the new definition, calls of the tool are refused.

Examples:
  rcrt mcp diff github
  rcrt mcp diff github search_issues")]
pub struct Diff {
    name: String,
    /// Only this tool, by its own name or its name here
    tool: Option<String>,
}

/// Accept changed definitions, so that the tools can be called again
#[derive(Debug, Args)]
#[command(after_long_help = "\
Accepts what `rcrt mcp diff` shows. A definition that the server changes in the meantime waits again.

Examples:
  rcrt mcp accept github search_issues
  rcrt mcp accept github --all")]
pub struct Accept {
    name: String,
    /// The tools, by their own names or their names here
    #[arg(required_unless_present = "all")]
    tools: Vec<String>,
    /// All that wait
    #[arg(long, conflicts_with = "tools")]
    all: bool,
}

type Waiting = Vec<(BreadcrumbListItem, Change)>;

async fn waiting(store: &(impl Records + ?Sized), server: &str) -> anyhow::Result<Waiting> {
    let mut found = changes(store, Some(server)).await?;
    found.sort_by(|(_, left), (_, right)| left.name.cmp(&right.name));
    Ok(found)
}

fn only(found: Waiting, server: &str, tool: &str) -> anyhow::Result<Waiting> {
    let found: Waiting = found.into_iter().filter(|(_, change)| change.tool == tool || change.name == tool).collect();
    if found.is_empty() {
        fail!(NotFound, "no changed definition of {tool} waits; see `rcrt mcp diff {server}`");
    }
    Ok(found)
}

impl Diff {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let store = connection::store(config)?;
        let server = find(&*store, &self.name).await?.config;
        let mut found = waiting(&*store, &server.name).await?;
        if let Some(tool) = &self.tool {
            found = only(found, &server.name, tool)?;
        }
        if output.is_json() {
            let changes: Vec<&Change> = found.iter().map(|(_, change)| change).collect();
            return output.json(&changes);
        }
        if found.is_empty() {
            return output.line(&format!("no changed definition of {} waits", server.name));
        }
        for (_, change) in &found {
            let accepted = store.get(change.tool_id).await?;
            print(output, change, &accepted.context)?;
        }
        Ok(())
    }
}

/// The fields of a tool's record that a definition decides.
const FIELDS: [&str; 4] = ["description", "definition", "annotations", "limits"];

fn print(output: Output, change: &Change, accepted: &Map<String, Value>) -> anyhow::Result<()> {
    let text = |context: &Map<String, Value>, field: &str| match context.get(field) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => serde_json::to_string_pretty(value).unwrap_or_default(),
        None => String::new(),
    };
    output.line(&output.paint(Style::Bold, &format!("--- {} (accepted {:.12})", change.name, change.accepted_hash)))?;
    output.line(&output.paint(Style::Bold, &format!("+++ {} (waits, {:.12})", change.name, change.definition_hash)))?;
    let mut differs = false;
    for field in FIELDS {
        let lines = unified(&text(accepted, field), &text(&change.proposed, field));
        if lines.is_empty() {
            continue;
        }
        differs = true;
        output.line(&output.paint(Style::Bold, field))?;
        // The text comes from the server.
        printable_lines(&lines.join("\n")).try_for_each(|line| print_line(output, &line))?;
    }
    if !differs {
        output.line("only fields that this runtime does not use differ; `--output json` shows the whole definition")?;
    }
    Ok(())
}

impl Accept {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let store = connection::store(config)?;
        let server = find(&*store, &self.name).await?.config;
        let found = waiting(&*store, &server.name).await?;
        let mut chosen = Vec::new();
        if self.all {
            chosen = found;
        } else {
            for tool in &self.tools {
                chosen.extend(only(found.clone(), &server.name, tool)?);
            }
        }
        let mut accepted = Vec::new();
        for (item, change) in &chosen {
            accept_change(&*store, (item.id, item.version), change).await.map_err(|error| match error {
                StoreError::VersionConflict { .. } => anyhow::anyhow!(
                    "the definition of {} has changed again; see `rcrt mcp diff {}`",
                    change.name,
                    server.name
                ),
                other => other.into(),
            })?;
            accepted.push(change.name.as_str());
        }
        if output.is_json() {
            return output.json(&json!({"accepted": accepted}));
        }
        match accepted.as_slice() {
            [] => output.line(&format!("no changed definition of {} waits", server.name)),
            names => output.line(&format!("accepted: {}", names.join(", "))),
        }
    }
}
