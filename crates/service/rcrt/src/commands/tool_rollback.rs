//! `rcrt tool rollback`: an older version of a tool as its newest one.

use std::time::Duration;

use clap::Args;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbVersion, Records, StoreError, ToolDefinition, is_draft, schema_names,
};
use rcrt_client::Client;
use rcrt_validate::Author;
use serde_json::json;

use super::runner_verdict::{Verdicts, Written};
use super::tool_versions::{ToolVersions, definition_hash, is_same, is_tool};
use crate::config::Config;
use crate::connection;
use crate::exit::{Failure, fail};
use crate::host_options::PrivateHosts;
use crate::output::{Output, Style};

/// Write an older version of a tool as its newest one
#[derive(Debug, Args)]
#[command(after_long_help = "\
Nothing is lost: the tool gets a new version with the old title, tags and definition. The old version is validated like \
a new one, and nothing is written if it has errors. It also brings back a tool that was retired.

Examples:
  rcrt tool rollback weather
  rcrt tool rollback weather 3")]
pub struct Rollback {
    name: String,
    /// The version of `rcrt tool history` [default: the newest published one that differs]
    #[arg(value_name = "VERSION", value_parser = clap::value_parser!(i64).range(1..))]
    number: Option<i64>,
    /// How long to wait for a runner to load the version; 0 does not wait
    #[arg(long, default_value_t = 20, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=600))]
    wait: u64,
    #[command(flatten)]
    private_hosts: PrivateHosts,
}

impl Rollback {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let versions = ToolVersions::read(&client, &self.name).await?;
        let chosen = self.chosen(&versions)?;
        self.validate(&versions, chosen, output)?;
        let changes = BreadcrumbChanges {
            title: Some(chosen.title.clone()),
            context: Some(chosen.context.clone()),
            tags: Some(chosen.tags.clone()),
            schema_name: chosen.schema_name.clone(),
            ..BreadcrumbChanges::default()
        };
        let updated = client.update(versions.record.id, versions.record.version, changes).await;
        let written = updated.map_err(|error| changed_meanwhile(error, &self.name))?;
        self.report(&client, chosen, &written, output).await
    }

    fn chosen<'v>(&self, versions: &'v ToolVersions) -> Result<&'v BreadcrumbVersion, Failure> {
        let Some(number) = self.number else {
            let message = || format!("{} has no older version that differs from the current one", self.name);
            return versions.last_different().ok_or_else(|| Failure::NotFound(message()));
        };
        let chosen = versions.version(number)?;
        let current = versions.version(versions.record.version)?;
        if !is_tool(chosen) {
            let schema = chosen.schema_name.as_deref().unwrap_or("none");
            fail!(Usage, "version {number} of {} is not a tool: its schema name is {schema}", self.name);
        }
        if !versions.has_same_name(chosen) {
            fail!(Usage, "version {number} has another name than {}; a rollback does not rename", self.name);
        }
        if is_same(chosen, current) {
            fail!(Usage, "version {number} of {} is the same definition as the current one", self.name);
        }
        Ok(chosen)
    }

    /// Validates as a runner does for records of this command's agent.
    fn validate(&self, versions: &ToolVersions, chosen: &BreadcrumbVersion, output: Output) -> anyhow::Result<()> {
        let record = &versions.record;
        let errors: Vec<String> = match ToolDefinition::read(
            chosen.schema_name.as_deref().unwrap_or_default(),
            &chosen.context,
            record.description.as_deref(),
            record.semantic_version.as_deref(),
        ) {
            Ok(definition) => {
                let report = rcrt_validate::tool_allowing(&definition, Author::User, &self.private_hosts.allowed);
                report.errors.iter().map(ToString::to_string).collect()
            }
            Err(violations) => violations.0.iter().map(ToString::to_string).collect(),
        };
        if errors.is_empty() {
            return Ok(());
        }
        let number = chosen.version;
        if output.is_json() {
            output.json(&json!({"name": self.name, "from": number, "written": false, "errors": errors}))?;
        } else {
            for error in &errors {
                output.line(&format!("{} {error}", output.paint(Style::Bad, "error:")))?;
            }
            output.line(&format!("version {number} of {} is not valid, so nothing was written", self.name))?;
        }
        Err(Failure::Shown.into())
    }

    /// Says what the runners make of the new version.
    async fn report(
        &self,
        client: &Client,
        chosen: &BreadcrumbVersion,
        written: &Breadcrumb,
        output: Output,
    ) -> anyhow::Result<()> {
        let (name, id, version) = (&self.name, written.id, written.version);
        let tool = Written {
            path: name.clone(),
            name: name.clone(),
            is_code: chosen.schema_name.as_deref() == Some(schema_names::TOOL_CODE),
            id,
            version,
        };
        let verdicts = Verdicts::wait_for(client, vec![tool], Duration::from_secs(self.wait)).await?;
        let is_draft = is_draft(&written.tags);
        let what = if is_draft { ", a draft: nothing changes for others" } else { "" };
        let said = format!("{name}: version {} is now version {version}{what}", chosen.version);
        let fields = json!({
            "name": name, "id": id, "from": chosen.version, "version": version,
            "definition_hash": definition_hash(chosen), "written": true, "draft": is_draft,
        });
        verdicts.report(name, &said, fields, output)
    }
}

/// Names the next step after a conflict.
pub(super) fn changed_meanwhile(error: StoreError, name: &str) -> anyhow::Error {
    let is_conflict = matches!(error, StoreError::VersionConflict { .. });
    let error = anyhow::Error::new(error);
    if !is_conflict {
        return error;
    }
    error.context(format!("{name} was changed meanwhile; see `rcrt tool history {name}` and repeat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_names_the_next_step_and_other_errors_are_unchanged() {
        let conflict = changed_meanwhile(StoreError::VersionConflict { expected: 1, actual: 2 }, "greet");
        assert_eq!(conflict.to_string(), "greet was changed meanwhile; see `rcrt tool history greet` and repeat");
        assert!(conflict.downcast_ref::<StoreError>().is_some());
        let other = changed_meanwhile(StoreError::Forbidden("not yours".into()), "greet");
        assert!(!other.to_string().contains("meanwhile"), "{other}");
    }
}
