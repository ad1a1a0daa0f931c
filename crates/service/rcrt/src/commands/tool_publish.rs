//! `rcrt tool publish`: a curator releases a draft.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use rcrt_breadcrumb::{Records, is_draft, schema_names};
use rcrt_client::{Client, PublishedTool};
use serde_json::json;
use uuid::Uuid;

use super::runner_verdict::{Verdicts, Written};
use super::tool_lookup::{ToolsOfName, no_tool};
use crate::config::Config;
use crate::connection;
use crate::output::Output;

/// Publish a draft of an agent, so that everybody can call it
#[derive(Debug, Args)]
#[command(after_long_help = "\
`rcrt tool show NAME` shows the draft and the version of its record. The tool keeps its author. If a runner is connected, \
the command waits for it to load the version, and exits with 1 if it refuses it or has not reported on it in the time of \
--wait. It also exits with 1 if the tool has no draft.

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
    /// How long to wait for a runner to load the version; 0 does not wait
    #[arg(long, default_value_t = 20, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=600))]
    wait: u64,
}

impl Publish {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        self.check_draft(&client).await?;
        let published = client.publish_tool(&self.name, self.record, self.record_version).await?;
        let PublishedTool { tool_id: id, name, record_version: version } = published;
        let is_code = client.get(id).await?.schema_name.as_deref() == Some(schema_names::TOOL_CODE);
        let tool = Written { path: name.clone(), name: name.clone(), is_code, id, version };
        let verdicts = Verdicts::wait_for(&client, vec![tool], Duration::from_secs(self.wait)).await?;
        let said = format!("{name} is published (record {id}, version {version})");
        let fields = json!({"tool_id": id, "name": name, "record_version": version});
        verdicts.report(&name, &said, fields, output)
    }

    /// Says why there is nothing to publish.
    async fn check_draft(&self, client: &Client) -> anyhow::Result<()> {
        let name = &self.name;
        let ToolsOfName { record, others, catalog, .. } = ToolsOfName::read(client, name).await?;
        let Some(record) = record else { return Err(no_tool(name, &catalog).into()) };
        if !std::iter::once(&record).chain(&others).any(|one| is_draft(&one.tags)) {
            bail!("{name} has no draft, so nothing was published; its version {} is already published", record.version);
        }
        Ok(())
    }
}
