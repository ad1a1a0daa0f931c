//! A tool's record with all its versions.

use rcrt_breadcrumb::{Breadcrumb, BreadcrumbVersion, Records, is_draft, schema_names};
use rcrt_client::Client;
use serde_json::Value;

use super::tool_lookup::{ToolsOfName, no_tool};
use super::tool_report::Reports;
use crate::exit::{Failure, fail};
use crate::seed;

pub(super) struct ToolVersions {
    pub record: Breadcrumb,
    /// Newest first, including the current one.
    pub all: Vec<BreadcrumbVersion>,
    pub reports: Reports,
}

impl ToolVersions {
    /// Reads the record that has this name, or else the last changed one that was retired with it.
    pub async fn read(client: &Client, name: &str) -> anyhow::Result<Self> {
        let found = ToolsOfName::read(client, name).await?;
        let record = match found.record {
            Some(record) => record,
            None => match seed::tools_named(client, schema_names::TOOL_RETIRED, name).await?.first() {
                Some(retired) => client.get(retired.id).await?,
                None if !found.can_read && found.catalog.entry(name).is_some() => {
                    fail!(Refused, "this agent cannot read the record of {name}: it needs the role subscriber");
                }
                None => return Err(no_tool(name, &found.catalog).into()),
            },
        };
        let all = client.history(record.id).await?;
        Ok(Self { record, all, reports: found.reports })
    }

    pub fn version(&self, number: i64) -> Result<&BreadcrumbVersion, Failure> {
        self.all.iter().find(|one| one.version == number).ok_or_else(|| {
            let known: Vec<String> = self.all.iter().rev().map(|one| one.version.to_string()).collect();
            Failure::NotFound(format!("the tool has no version {number}; it has {}", known.join(", ")))
        })
    }

    /// The newest version before the current one that is another definition of a tool. A published
    /// one, unless all are drafts.
    pub fn last_different(&self) -> Option<&BreadcrumbVersion> {
        let current = self.all.iter().find(|one| one.version == self.record.version)?;
        let is_other = |one: &&BreadcrumbVersion| {
            one.version < current.version && is_tool(one) && self.has_same_name(one) && !is_same(one, current)
        };
        let older = || self.all.iter().filter(is_other);
        older().find(|one| !is_draft(&one.tags)).or_else(|| older().next())
    }

    /// Whether the version has the tool's name of now.
    pub fn has_same_name(&self, version: &BreadcrumbVersion) -> bool {
        version.context.get("name") == self.record.context.get("name")
    }
}

/// Whether this version could be called.
pub(super) fn is_tool(version: &BreadcrumbVersion) -> bool {
    schema_names::is_tool(version.schema_name.as_deref())
}

/// Whether both are the same definition for a runner.
pub(super) fn is_same(one: &BreadcrumbVersion, other: &BreadcrumbVersion) -> bool {
    one.context == other.context && one.schema_name == other.schema_name
}

/// The version that the author gave it, in the definition.
pub(super) fn authors_version(version: &BreadcrumbVersion) -> Option<&str> {
    version.context.get("version").and_then(Value::as_str)
}

/// Identifies exactly this definition.
pub(super) fn definition_hash(version: &BreadcrumbVersion) -> String {
    Breadcrumb::definition_hash(&version.checksum)
}
