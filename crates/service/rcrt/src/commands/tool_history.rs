//! `rcrt tool history`: the versions of a tool.

use chrono::{DateTime, Utc};
use clap::Args;
use rcrt_breadcrumb::{BreadcrumbVersion, is_draft, schema_names};
use serde::Serialize;
use uuid::Uuid;

use super::tool_report::Report;
use super::tool_versions::{ToolVersions, authors_version, definition_hash, is_tool};
use crate::config::Config;
use crate::connection;
use crate::output::{Output, one_line};

/// Characters of a definition hash in the table, after `sha256:`.
const SHORT_HASH: usize = 12;

/// List the versions of a tool, newest first
#[derive(Debug, Args)]
#[command(after_long_help = "\
The number of a version is that of the tool's record. It also finds a tool that was retired.

Examples:
  rcrt tool history weather
  rcrt tool history weather --output json")]
pub struct History {
    name: String,
}

#[derive(Debug, Serialize)]
struct Row<'v> {
    version: i64,
    /// The version that the author gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_version: Option<&'v str>,
    definition_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_name: Option<&'v str>,
    title: &'v str,
    updated_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_by: Option<Uuid>,
    state: &'static str,
    /// Why the newest version does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl<'v> Row<'v> {
    fn of(version: &'v BreadcrumbVersion, versions: &ToolVersions) -> Self {
        let report = versions.reports.on(&versions.record);
        let is_current = version.version == versions.record.version;
        let published = versions.all.iter().find(|version| !is_draft(&version.tags)).map(|version| version.version);
        let runs = report.map_or(published, |report| report.running_version);
        let is_retired = versions.record.schema_name.as_deref() == Some(schema_names::TOOL_RETIRED);
        let state = if !is_tool(version) {
            "retired"
        } else if is_draft(&version.tags) {
            "draft"
        } else if runs == Some(version.version) && !is_retired {
            "current"
        } else if is_current {
            "broken"
        } else {
            "old"
        };
        Self {
            version: version.version,
            tool_version: authors_version(version),
            definition_hash: definition_hash(version),
            schema_name: version.schema_name.as_deref(),
            title: &version.title,
            updated_at: version.updated_at,
            updated_by: version.updated_by,
            state,
            problem: report.filter(|_| is_current).map(Report::sentence),
        }
    }

    fn cells(&self) -> Vec<String> {
        let hash: String = self.definition_hash.chars().skip("sha256:".len()).take(SHORT_HASH).collect();
        vec![
            self.version.to_string(),
            one_line(self.tool_version.unwrap_or("-"), 20),
            self.updated_at.format("%Y-%m-%d %H:%M:%S").to_string(),
            self.updated_by.map_or_else(|| "-".to_owned(), |agent| agent.to_string()),
            hash,
            self.problem.as_ref().map_or_else(|| self.state.to_owned(), |why| one_line(&format!("BROKEN: {why}"), 70)),
        ]
    }
}

impl History {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let versions = ToolVersions::read(&connection::client(config)?, &self.name).await?;
        let rows: Vec<Row<'_>> = versions.all.iter().map(|version| Row::of(version, &versions)).collect();
        output.list(&rows, &["VERSION", "TOOL VERSION", "WRITTEN (UTC)", "BY", "HASH", "STATE"], Row::cells)
    }
}
