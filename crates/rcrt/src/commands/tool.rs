//! `rcrt tool`: the tools that there are, and files that are to become tools.

use breadcrumb::{Breadcrumb, Breadcrumbs, StoreError, ToolDefinition, schema_names};
use clap::Subcommand;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    tool_new::New,
    tool_report::{Report, Reports},
    tool_show,
    tool_validate::Validate,
};
use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::output::{Output, one_line};
use crate::seed;

/// List, show, check and begin tools
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  rcrt tool list
  rcrt tool show calculator
  rcrt tool new weather --template http-api --dir my-tools
  rcrt tool validate my-tools/weather.json
  rcrt bootstrap my-tools")]
pub enum Tool {
    /// List the tools that there are, and what is wrong with those that are not run
    List,
    /// Show the definition that a call of this name reaches
    Show {
        name: String,
    },
    Validate(Validate),
    New(New),
}

impl Tool {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self {
            Self::List => list(config, output).await,
            Self::Show { name } => show(config, output, &name).await,
            Self::Validate(validate) => validate.run(output),
            Self::New(new) => new.run(output),
        }
    }
}

/// One tool of the list.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    version: String,
    schema_name: String,
    /// `seed` for what a bootstrap brought, else `agent`.
    source: &'static str,
    description: String,
    id: Uuid,
    record_version: i64,
    /// Why its newest version is not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// What the runner says of it, when it does not run this version.
    #[serde(flatten)]
    report: Option<Report>,
}

impl Row {
    fn of(record: &Breadcrumb, reports: &Reports) -> Self {
        let schema = record.schema_name.clone().unwrap_or_default();
        let read = read(record);
        let text = |key: &str| record.context.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            version: read.as_ref().map(|tool| tool.version.clone()).unwrap_or_default(),
            schema_name: schema,
            source: if record.tags.iter().any(|tag| tag.starts_with(seed::SEED_TAG)) { "seed" } else { "agent" },
            description: read.as_ref().map_or_else(|_| text("description"), |tool| tool.description.clone()),
            id: record.id,
            record_version: record.version,
            problem: reports.on(record).map(Report::sentence).or(read.err()),
            report: reports.on(record).cloned(),
        }
    }

    /// The description, or what matters more.
    fn about(&self) -> String {
        match (&self.problem, self.report.as_ref().map(|report| report.running_version)) {
            (None, _) => self.description.clone(),
            (Some(why), Some(Some(version))) => format!("BROKEN, its version {version} runs: {why}"),
            (Some(why), Some(None)) => format!("NOT RUN: {why}"),
            (Some(why), None) => format!("BROKEN: {why}"),
        }
    }
}

/// The definition, or what is wrong with it.
fn read(record: &Breadcrumb) -> Result<ToolDefinition, String> {
    let schema = record.schema_name.as_deref().unwrap_or_default();
    ToolDefinition::read(schema, &record.context, record.description.as_deref(), record.semantic_version.as_deref())
        .map_err(|violations| violations.to_string())
}

async fn list(config: &Config, output: Output) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let (tools, reports) = tokio::try_join!(tools(&*store, None), Reports::read(&*store))?;
    let mut rows: Vec<Row> = tools.iter().map(|record| Row::of(record, &reports)).collect();
    rows.sort_by(|one, other| (&one.name, &one.schema_name).cmp(&(&other.name, &other.schema_name)));
    if output.is_json() {
        return output.json(&rows);
    }
    let table: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let version = if row.version.is_empty() { "-" } else { &row.version };
            vec![
                one_line(&row.name, 40),
                one_line(version, 20),
                row.schema_name.clone(),
                row.source.to_owned(),
                one_line(&row.about(), 70),
            ]
        })
        .collect();
    output.table(&["NAME", "VERSION", "SCHEMA", "FROM", "DESCRIPTION"], &table)
}

async fn show(config: &Config, output: Output, name: &str) -> anyhow::Result<()> {
    let store = connection::store(config)?;
    let (found, reports) = tokio::try_join!(tools(&*store, Some(name)), Reports::read(&*store))?;
    // As runners choose: of those that have a version that runs, code before legacy, then the oldest.
    let record = found
        .iter()
        .min_by_key(|record| {
            let runs =
                reports.on(record).map_or_else(|| read(record).is_ok(), |report| report.running_version.is_some());
            let is_code = record.schema_name.as_deref() == Some(schema_names::TOOL_CODE);
            (!runs, !is_code, record.created_at, record.id)
        })
        .ok_or_else(|| Failure::NotFound(format!("there is no tool named {name}; see them with `rcrt tool list`")))?;
    if output.is_json() {
        output.json(record)
    } else {
        tool_show::print(output, record, read(record), reports.on(record))
    }
}

/// The tools of the tenant, or those of one name.
async fn tools(store: &dyn Breadcrumbs, name: Option<&str>) -> Result<Vec<Breadcrumb>, StoreError> {
    let mut ids = Vec::new();
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_LEGACY] {
        let items = match name {
            Some(name) => seed::tools_named(store, schema, name).await?,
            None => {
                let schema = Some(schema.to_owned());
                seed::every(store, breadcrumb::Selector { schema_name: schema, ..Default::default() }).await?
            }
        };
        ids.extend(items.into_iter().map(|item| item.id));
    }
    stream::iter(ids)
        .map(|id| async move {
            match store.get(id).await {
                Err(StoreError::NotFound { .. }) => Ok(None),
                other => other.map(Some),
            }
        })
        .buffered(8)
        .try_filter_map(|record| async { Ok(record) })
        .try_collect()
        .await
}
