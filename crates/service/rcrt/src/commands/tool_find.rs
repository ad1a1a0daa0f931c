//! `rcrt tool find`: the tools that fit a text.

use clap::Args;
use rcrt_breadcrumb::Profile;
use serde_json::Value;

use crate::config::Config;
use crate::connection;
use crate::output::{Output, one_line};

/// Find the tools that fit a task, best match first
#[derive(Debug, Args)]
#[command(after_long_help = "\
It ranks the tools that the agent can call by their words and by their meaning. A score is from 0 to 1. With three \
words or more it also names the two services (agents, MCP servers, families of tools) that fit best.

Examples:
  rcrt tool find refund a payment
  rcrt tool find --limit 3 \"what is the weather tomorrow\"")]
pub struct Find {
    /// What you want to do, in a few words
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// Maximum number of tools, at most 50
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50), default_value_t = 10)]
    limit: u32,
    /// Only tools that this profile allows: main, subagent, scheduled or a2asynthesis
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
}

impl Find {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let found = client.find_tools(&self.text.join(" "), Some(self.limit), self.profile).await?;
        if output.is_json() {
            return output.json(&found);
        }
        let rows: Vec<Vec<String>> = found
            .tools
            .iter()
            .map(|found| {
                let tool = &found.tool;
                let score = format!("{:.2}", found.score);
                vec![score, one_line(&tool.name, 64), tool.source.to_string(), one_line(&tool.description, 70)]
            })
            .collect();
        output.table(&["SCORE", "NAME", "SOURCE", "DESCRIPTION"], &rows)?;
        if !found.hints.is_empty() {
            let hints: Vec<String> = found.hints.iter().map(hint).collect();
            output.note(&format!("services: {}", hints.join(", ")));
        }
        Ok(())
    }
}

fn hint(service: &Value) -> String {
    let text = |key: &str| one_line(service.get(key).and_then(Value::as_str).unwrap_or_default(), 64);
    format!("{} ({})", text("id"), text("type"))
}
