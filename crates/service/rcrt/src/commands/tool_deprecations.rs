//! `rcrt tool deprecations`: deprecated tools, and who still calls them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use clap::Args;
use rcrt_breadcrumb::{CallHistory, CallQuery, Deprecation, MAX_CALLS};
use rcrt_client::Client;
use serde::Serialize;
use uuid::Uuid;

use super::audit::moment;
use super::tool_lookup::whole_catalog;
use crate::config::Config;
use crate::connection;
use crate::output::{Output, one_line};

/// List deprecated tools and the agents that still call them
#[derive(Debug, Args)]
#[command(after_long_help = "\
It counts the calls that the token's agent can see in `rcrt calls`: a curator sees all of them.

Examples:
  rcrt tool deprecations
  rcrt tool deprecations --since 30d")]
pub struct Deprecations {
    /// Count the calls from this time on: 2026-01-31T12:00:00Z, or 30m, 2h, 7d ago
    #[arg(long, default_value = "7d", value_name = "TIME", value_parser = moment)]
    since: DateTime<Utc>,
}

#[derive(Debug, Serialize)]
struct DeprecatedTool {
    name: String,
    deprecated: Deprecation,
    callers: Vec<Calls>,
}

/// The calls of one agent.
#[derive(Debug, Serialize)]
struct Calls {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<Uuid>,
    calls: u64,
    last: DateTime<Utc>,
}

impl Deprecations {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let mut found = Vec::new();
        for tool in whole_catalog(&client).await?.tools {
            let Some(deprecated) = tool.deprecated else { continue };
            let callers = callers(&client, &tool.name, self.since).await?;
            found.push(DeprecatedTool { name: tool.name, deprecated, callers });
        }
        if output.is_json() {
            return output.json(&found);
        }
        let rows: Vec<Vec<String>> = found.iter().flat_map(rows).collect();
        output.table(&["TOOL", "SINCE", "REMOVED AFTER", "USE", "CALLS", "LAST (UTC)", "AGENT"], &rows)
    }
}

/// Reads all pages. The agent with the most calls comes first.
async fn callers(client: &Client, tool: &str, since: DateTime<Utc>) -> anyhow::Result<Vec<Calls>> {
    let mut query =
        CallQuery { tool: Some(tool.to_owned()), since: Some(since), limit: MAX_CALLS, ..CallQuery::default() };
    let mut counted: BTreeMap<Option<Uuid>, Calls> = BTreeMap::new();
    loop {
        let page = client.list_calls(&query).await?;
        for call in page.calls {
            let at = call.call.queued_at;
            let one = counted.entry(call.agent_id).or_insert(Calls { agent_id: call.agent_id, calls: 0, last: at });
            one.calls += 1;
            one.last = one.last.max(at);
        }
        query.before = page.next;
        if query.before.is_none() {
            break;
        }
    }
    let mut callers: Vec<Calls> = counted.into_values().collect();
    callers.sort_by_key(|one| (std::cmp::Reverse(one.calls), one.agent_id));
    Ok(callers)
}

/// One row for each caller, or one without a caller.
fn rows(tool: &DeprecatedTool) -> Vec<Vec<String>> {
    let Deprecation { since, replacement, remove_after } = &tool.deprecated;
    let row = |caller: Option<&Calls>| {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        vec![
            one_line(&tool.name, 40),
            since.to_string(),
            or_dash(remove_after.map(|day| day.to_string())),
            or_dash(replacement.as_deref().map(|name| one_line(name, 40))),
            caller.map_or(0, |one| one.calls).to_string(),
            or_dash(caller.map(|one| one.last.format("%Y-%m-%d %H:%M:%S").to_string())),
            or_dash(caller.and_then(|one| one.agent_id).map(|agent| agent.to_string())),
        ]
    };
    if tool.callers.is_empty() { vec![row(None)] } else { tool.callers.iter().map(|one| row(Some(one))).collect() }
}
