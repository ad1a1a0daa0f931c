//! Records with the same tool name: which one runs, and why the others do not.

use rcrt_breadcrumb::{Breadcrumb, Catalog, schema_names};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::tool_report::{Report, Reports};

/// Another record with the same tool name.
#[derive(Debug, Serialize)]
pub struct Other {
    pub id: Uuid,
    pub schema_name: String,
    pub version: i64,
}

impl From<&Breadcrumb> for Other {
    fn from(record: &Breadcrumb) -> Self {
        let schema_name = record.schema_name.clone().unwrap_or_default();
        Self { id: record.id, schema_name, version: record.version }
    }
}

impl Other {
    /// The record that runs under this record's name, if the catalog names another one.
    pub fn served_instead(record: &Breadcrumb, all: &[Breadcrumb], catalog: &Catalog) -> Option<Self> {
        let name = record.context.get("name").and_then(Value::as_str)?;
        let id = catalog.find(name)?.tool_id;
        all.iter().find(|other| other.id == id && id != record.id).map(Self::from)
    }

    fn is_code(&self) -> bool {
        self.schema_name == schema_names::TOOL_CODE
    }

    /// The text for a valid record that does not run because this one does.
    pub fn runs_instead(&self) -> String {
        let Self { schema_name, id, .. } = self;
        if self.is_code() {
            format!("REPLACED by {schema_name} {id}")
        } else {
            format!("NOT RUN: {schema_name} {id} runs")
        }
    }

    /// The text at the record that runs.
    pub fn beside(&self, running: &Breadcrumb, reports: &Reports, record: &Breadcrumb) -> String {
        let Self { schema_name, id, version } = self;
        let is_code = running.schema_name.as_deref() == Some(schema_names::TOOL_CODE);
        let state = match reports.on(record).map(Report::sentence) {
            Some(problem) => format!("not run: {problem}"),
            None if is_code && !self.is_code() => "replaced by this record, runs when this record cannot".into(),
            None => "not run, this record runs instead".into(),
        };
        format!("{schema_name} {id} (version {version}): {state}")
    }
}
