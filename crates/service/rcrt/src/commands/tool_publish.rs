//! `rcrt tool publish`: a curator releases a draft.

use clap::Args;
use rcrt_client::PublishedTool;
use uuid::Uuid;

use crate::config::Config;
use crate::connection;
use crate::output::Output;

/// Publish a draft of an agent, so that everybody can call it
#[derive(Debug, Args)]
#[command(after_long_help = "\
`rcrt tool show NAME` shows the draft and the version of its record. The tool keeps its author.

Examples:
  rcrt tool publish weather
  rcrt tool publish weather --record-version 3")]
pub struct Publish {
    /// The name of the tool
    name: String,
    /// The record of the draft, if several agents have a draft with this name
    #[arg(long, value_name = "ID")]
    record: Option<Uuid>,
    /// Publish only this version of the record: the one that you reviewed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    record_version: Option<i64>,
}

impl Publish {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let published = client.publish_tool(&self.name, self.record, self.record_version).await?;
        if output.is_json() {
            return output.json(&published);
        }
        let PublishedTool { tool_id, name, record_version } = published;
        output.line(&format!("{name} is published (record {tool_id}, version {record_version})"))
    }
}
