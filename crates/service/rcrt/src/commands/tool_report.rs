//! Reports of runners about tools whose newest version they do not run: the open `tool.error.v1`
//! records.

use std::collections::HashMap;

use rcrt_breadcrumb::{Breadcrumb, BreadcrumbQuery, MAX_PAGE, Records, StoreError, schema_names};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Why a version of a tool does not run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    #[serde(skip_serializing)]
    tool_id: Uuid,
    #[serde(skip_serializing)]
    version: i64,
    /// The older version that runs instead, if any.
    pub running_version: Option<i64>,
    errors: Vec<Value>,
}

impl Report {
    /// All errors as one line, with their positions in the source.
    pub fn sentence(&self) -> String {
        let text = |error: &Value, key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |error: &Value, key: &str| error.get(key).and_then(Value::as_u64);
        let lines = self.errors.iter().map(|error| match (text(error, "field"), text(error, "message")) {
            (field, message) if field.is_empty() => message,
            (field, message) => match (number(error, "line"), number(error, "column")) {
                (Some(line), Some(column)) => format!("{field}:{line}:{column}: {message}"),
                _ => format!("{field}: {message}"),
            },
        });
        lines.collect::<Vec<_>>().join("; ")
    }
}

/// The reports of a tenant.
#[derive(Debug, Default)]
pub struct Reports(HashMap<Uuid, Report>);

impl Reports {
    pub async fn read(store: &dyn Records) -> Result<Self, StoreError> {
        let mut query = BreadcrumbQuery { limit: MAX_PAGE, ..BreadcrumbQuery::of_schema(schema_names::TOOL_ERROR) };
        let mut reports = HashMap::new();
        loop {
            let page = store.list(&query).await?;
            let is_last = page.len() < MAX_PAGE as usize;
            let contexts = page.into_iter().filter_map(|item| item.context);
            // Anybody can write a record with this schema. Skip those that do not have a runner's
            // format.
            let read = contexts.filter_map(|context| serde_json::from_value::<Report>(Value::Object(context)).ok());
            reports.extend(read.map(|report| (report.tool_id, report)));
            if is_last {
                return Ok(Self(reports));
            }
            query.offset += MAX_PAGE;
        }
    }

    /// Returns the report on exactly this version.
    pub fn on(&self, tool: &Breadcrumb) -> Option<&Report> {
        self.of(tool.id, tool.version)
    }

    /// As [`Self::on`], for a record of which only the id and the version are known.
    pub fn of(&self, tool_id: Uuid, version: i64) -> Option<&Report> {
        self.0.get(&tool_id).filter(|report| report.version == version)
    }
}
