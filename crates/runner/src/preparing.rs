//! From a tool's record to something that can be run, or to what is wrong with it.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use breadcrumb::{Breadcrumb, Profiles, ToolDefinition, ToolFailure, Violations, schema_names};
use executors::egress::PrivateHost;
use executors::{Executor, Executors};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use validate::{Author, Schema};

use crate::judging::judge;
use crate::tool::{Problem, Tool};

/// How long an executor may take to prepare one version.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Preparing {
    pub executors: Arc<Executors>,
    pub system_authors: HashSet<Uuid>,
    pub allowed_private: Arc<[PrivateHost]>,
}

/// One version of a tool's record.
pub(crate) struct Version<'r> {
    pub record: &'r Breadcrumb,
    pub number: i64,
    pub context: &'r Map<String, Value>,
    pub tags: &'r [String],
    pub author: Option<Uuid>,
}

impl<'r> Version<'r> {
    pub fn newest(record: &'r Breadcrumb) -> Self {
        let Breadcrumb { version, context, tags, updated_by, .. } = record;
        Self { record, number: *version, context, tags, author: *updated_by }
    }
}

/// Whether records of this schema are tools.
pub(crate) fn is_tool(schema_name: Option<&str>) -> bool {
    matches!(schema_name, Some(schema_names::TOOL_CODE | schema_names::TOOL_LEGACY))
}

impl Preparing {
    pub async fn prepare(&self, version: &Version<'_>) -> Result<Tool, Problem> {
        let record = version.record;
        let definition = ToolDefinition::read(
            record.schema_name.as_deref().unwrap_or_default(),
            version.context,
            record.description.as_deref(),
            record.semantic_version.as_deref(),
        )
        .map_err(|violations| of_violations(&violations))?;
        let author = match version.author {
            Some(agent) if self.system_authors.contains(&agent) => Author::System,
            _ => Author::User,
        };
        let definition = Arc::new(definition);
        let (input, output) = checked(definition.clone(), author, self.allowed_private.clone()).await?;
        let executor = self.executors.of(&definition.implementation).map_err(of_failure)?.clone();
        load(executor.as_ref(), &definition, record, version.number).await?;
        let mut profiles = Profiles::default();
        profiles.add_tags(version.tags);
        Ok(Tool {
            id: record.id,
            version: version.number,
            created_at: record.created_at,
            named_since: match version.number {
                1 => OnceLock::from(record.created_at),
                _ => OnceLock::new(),
            },
            workspace: version.tags.iter().find(|tag| tag.starts_with("workspace:")).cloned(),
            profiles,
            definition,
            input,
            output,
            executor,
        })
    }
}

/// Validation reads a syntax tree and compiles schemas: not on a thread that others wait for.
async fn checked(
    definition: Arc<ToolDefinition>,
    author: Author,
    allowed_private: Arc<[PrivateHost]>,
) -> Result<(Schema, Schema), Problem> {
    let check = move || {
        let report = judge(&definition, author, &allowed_private);
        if !report.errors.is_empty() {
            return Err(Problem { errors: report.errors.iter().map(|finding| json!(finding)).collect() });
        }
        let compile = |field: &str, schema: &Value| {
            Schema::compile(schema).map_err(|error| Problem::new(field, error.to_string()))
        };
        let input = compile("input_schema", &definition.input_schema)?;
        Ok((input, compile("output_schema", &definition.output_schema)?))
    };
    tokio::task::spawn_blocking(check)
        .await
        .unwrap_or_else(|error| Err(Problem::new("", format!("the validator failed: {error}"))))
}

async fn load(
    executor: &dyn Executor,
    definition: &ToolDefinition,
    record: &Breadcrumb,
    version: i64,
) -> Result<(), Problem> {
    match tokio::time::timeout(PATIENCE, executor.load(definition, record.owner_id, record.id, version)).await {
        Ok(loaded) => loaded.map_err(of_failure),
        Err(_) => Err(Problem::new("", format!("the tool was not ready after {} s", PATIENCE.as_secs()))),
    }
}

fn of_violations(violations: &Violations) -> Problem {
    Problem { errors: violations.0.iter().map(|violation| json!(violation)).collect() }
}

/// An executor that knows where the errors are lists them in its details.
fn of_failure(failure: ToolFailure) -> Problem {
    match failure.details.as_ref().and_then(|details| details.get("errors")?.as_array()) {
        Some(errors) if !errors.is_empty() => Problem { errors: errors.clone() },
        _ => Problem::new("", failure.message),
    }
}
