//! `rcrt tool pin`: what a request names to get exactly one version of a tool.

use clap::Args;
use serde_json::json;

use super::tool_versions::{ToolVersions, definition_hash, is_tool};
use crate::config::Config;
use crate::connection;
use crate::exit::fail;
use crate::output::Output;

/// Print what a request names to get exactly one version of a tool
#[derive(Debug, Args)]
#[command(after_long_help = "\
A pin is a field of the request, so it affects no other caller. The hash names the definition itself: such a request \
runs this definition or fails, whatever is written to the tool later.

Examples:
  rcrt tool pin weather
  rcrt tool pin weather 3
  rcrt call weather --definition-hash $(rcrt tool pin weather 3)")]
pub struct Pin {
    name: String,
    /// The version of `rcrt tool history` [default: the current one]
    #[arg(value_name = "VERSION", value_parser = clap::value_parser!(i64).range(1..))]
    number: Option<i64>,
}

impl Pin {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let versions = ToolVersions::read(&connection::client(config)?, &self.name).await?;
        let current = versions.version(versions.record.version)?;
        let name = self.name;
        if !is_tool(current) {
            fail!(Usage, "{name} is retired, so no version of it can be called; `rcrt tool rollback {name}`");
        }
        let chosen = versions.version(self.number.unwrap_or(current.version))?;
        if chosen.schema_name != current.schema_name || !versions.has_same_name(chosen) {
            fail!(Usage, "version {} of {name} has another name or schema, so it cannot be called", chosen.version);
        }
        let hash = definition_hash(chosen);
        output.either(&json!({"tool": name, "version": chosen.version, "definition_hash": hash}), &hash)
    }
}
