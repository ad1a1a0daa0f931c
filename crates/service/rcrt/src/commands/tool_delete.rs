//! `rcrt tool retire` and `rcrt tool delete`: the two ways to end a tool.

use clap::Args;
use rcrt_breadcrumb::{BreadcrumbChanges, Records, schema_names};
use serde_json::json;

use super::tool_rollback::changed_meanwhile;
use super::tool_versions::ToolVersions;
use crate::config::Config;
use crate::connection;
use crate::exit::fail;
use crate::output::Output;

/// Take a tool out of use and keep its versions
#[derive(Debug, Args)]
#[command(after_long_help = "\
Calls of a retired tool are answered with ToolNotFound, and its name is free. `rcrt tool rollback NAME` brings it back. \
A later bootstrap of a file with its name reports it and exits with 1, until --overwrite is given.

Examples:
  rcrt tool retire weather
  rcrt tool history weather
  rcrt tool rollback weather")]
pub struct Retire {
    name: String,
}

/// Delete a tool with all its versions
#[derive(Debug, Args)]
#[command(after_long_help = "\
A deleted tool cannot be brought back, and a later bootstrap creates it again from its file. `rcrt tool retire` keeps \
the versions.

Examples:
  rcrt tool delete weather")]
pub struct Delete {
    name: String,
}

impl Retire {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let ToolVersions { record, .. } = ToolVersions::read(&client, &self.name).await?;
        let name = self.name;
        if record.schema_name.as_deref() == Some(schema_names::TOOL_RETIRED) {
            fail!(Usage, "{name} is already retired; bring it back with `rcrt tool rollback {name}`");
        }
        let changes =
            BreadcrumbChanges { schema_name: Some(schema_names::TOOL_RETIRED.to_owned()), ..Default::default() };
        let retired = client.update(record.id, record.version, changes).await;
        let retired = retired.map_err(|error| changed_meanwhile(error, &name))?;
        output.either(
            &json!({"name": name, "id": retired.id, "version": retired.version, "retired": true}),
            &format!("{name} is retired; bring it back with `rcrt tool rollback {name}`"),
        )
    }
}

impl Delete {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let ToolVersions { record, all, .. } = ToolVersions::read(&client, &self.name).await?;
        let name = self.name;
        let deleted = client.delete(record.id, Some(record.version)).await;
        deleted.map_err(|error| changed_meanwhile(error, &name))?;
        output.either(
            &json!({"name": name, "id": record.id, "versions": all.len(), "deleted": true}),
            &format!("{name} is deleted, with all its versions ({})", all.len()),
        )
    }
}
