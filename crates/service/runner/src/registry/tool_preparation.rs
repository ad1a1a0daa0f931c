//! Turns a tool's record into a tool that can run, or into a problem for its author.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbVersion, CURATORS_TOOL_TAG, Matcher, Profiles, ToolDefinition, ToolFailure, Violations,
    is_draft, schema_names,
};
use rcrt_egress::PrivateHost;
use rcrt_executors::Executors;
use rcrt_validate::{Author, Budget, Schema, closed_hosts, tool_allowing};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::registry::tool::{Candidate, NamedSince, Problem, Tool, asks_for_secrets};

/// How long an executor may take to prepare one version.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct ToolPreparer {
    pub executors: Arc<Executors>,
    pub system_authors: HashSet<Uuid>,
    pub allowed_private: Arc<[PrivateHost]>,
    pub rcrt_compat: bool,
    /// The memory budget for the schemas of all tools together.
    pub schemas: Budget,
}

/// The approximate maximum size of the compiled schemas of a runner's tools, in bytes.
pub(crate) const SCHEMA_BYTES: u64 = 512 * 1024 * 1024;

/// One version of a tool's record.
pub(crate) struct Version<'r> {
    pub record: &'r Breadcrumb,
    pub number: i64,
    pub context: &'r Map<String, Value>,
    pub tags: &'r [String],
    pub author: Option<Uuid>,
    pub checksum: &'r str,
}

impl<'r> Version<'r> {
    pub fn newest(record: &'r Breadcrumb) -> Self {
        let Breadcrumb { version, context, tags, updated_by, checksum, .. } = record;
        Self { record, number: *version, context, tags, author: *updated_by, checksum }
    }

    pub fn older(record: &'r Breadcrumb, version: &'r BreadcrumbVersion) -> Self {
        let BreadcrumbVersion { version: number, context, tags, updated_by, checksum, .. } = version;
        Self { record, number: *number, context, tags, author: *updated_by, checksum }
    }
}

impl ToolPreparer {
    /// Reads the version without validating it.
    pub fn candidate(&self, version: &Version<'_>) -> Result<Candidate, Problem> {
        let record = version.record;
        let definition = ToolDefinition::read(
            record.schema_name.as_deref().unwrap_or_default(),
            version.context,
            record.description.as_deref(),
            record.semantic_version.as_deref(),
        )
        .map_err(|violations| of_violations(&violations))?;
        let executor = self.executors.of(&definition.implementation).map_err(of_failure)?.clone();
        let mut profiles = Profiles::default();
        profiles.add_tags(version.tags);
        let is_system = version.author.is_some_and(|agent| self.system_authors.contains(&agent));
        // The store checks the tag on this schema only. On another schema any author could set it.
        let is_curators = record.schema_name.as_deref() == Some(schema_names::TOOL_CODE)
            && version.tags.iter().any(|tag| tag == CURATORS_TOOL_TAG);
        let closed_hosts =
            if is_system || is_curators { closed_hosts(&definition, &self.allowed_private) } else { Vec::new() };
        Ok(Candidate {
            id: record.id,
            owner_id: record.owner_id,
            version: version.number,
            definition_hash: Breadcrumb::definition_hash(version.checksum),
            created_at: record.created_at,
            named_since: match version.number {
                1 => OnceLock::from(NamedSince::both(record.created_at)),
                _ => OnceLock::new(),
            },
            workspace: version.tags.iter().find(|tag| tag.starts_with("workspace:")).cloned(),
            tags: version.tags.to_vec(),
            profiles,
            subscriptions: definition.subscriptions.iter().map(Matcher::from).collect(),
            gets_all_granted: self.rcrt_compat && asks_for_secrets(&definition.implementation),
            definition: Arc::new(definition),
            executor,
            author: version.author,
            is_system,
            is_curators,
            closed_hosts,
            is_draft: is_draft(version.tags),
        })
    }

    /// Validates the version: by the validators, by compiling its schemas, and by its executor.
    pub async fn prepare(&self, version: &Version<'_>) -> Result<Tool, Problem> {
        let candidate = Arc::new(self.candidate(version)?);
        let owner_id = version.record.owner_id;
        in_pool(owner_id, self.validation(&candidate)).await?;
        // Neither needs the other, and the author waits.
        let (schemas, loaded) = tokio::join!(
            in_pool(owner_id, compilation(candidate.definition.clone(), self.schemas.clone())),
            load(&candidate, owner_id),
        );
        let (input, output) = schemas?;
        loaded?;
        Ok(Tool::new(candidate, input, output))
    }

    fn validation(&self, candidate: &Candidate) -> impl FnOnce() -> Result<(), Problem> + Send + use<> {
        let author = if candidate.is_system { Author::System } else { Author::User };
        // Such a host is not an error in the record: the tool waits for it.
        let mut opened = self.allowed_private.to_vec();
        opened.extend(candidate.closed_hosts.iter().cloned());
        let definition = candidate.definition.clone();
        move || {
            let report = tool_allowing(&definition, author, &opened);
            if report.errors.is_empty() {
                return Ok(());
            }
            Err(Problem { errors: report.errors.iter().map(|finding| json!(finding)).collect() })
        }
    }
}

/// Compiles the schemas of the input and the output.
fn compilation(
    definition: Arc<ToolDefinition>,
    schemas: Budget,
) -> impl FnOnce() -> Result<(Schema, Schema), Problem> + Send {
    move || {
        let compile = |field: &str, schema: &Value| {
            Schema::compile_within(schema, &schemas).map_err(|error| Problem::new(field, error.to_string()))
        };
        let input = compile("input_schema", &definition.input_schema)?;
        Ok((input, compile("output_schema", &definition.output_schema)?))
    }
}

/// Runs the work outside of the async runtime, in the tenant's fair share.
async fn in_pool<T: Send + 'static>(
    owner_id: Uuid,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = rcrt_compute::pool().run(owner_id, work).await;
    done.unwrap_or_else(|error| Err(Problem::new("", format!("the validator failed: {error}"))))
}

async fn load(tool: &Candidate, owner_id: Uuid) -> Result<(), Problem> {
    let loading = tool.executor.load(&tool.definition, owner_id, tool.id, tool.version);
    match tokio::time::timeout(PATIENCE, loading).await {
        Ok(loaded) => loaded.map_err(of_failure),
        Err(_) => Err(Problem::new("", format!("the tool was not ready after {} s", PATIENCE.as_secs()))),
    }
}

fn of_violations(violations: &Violations) -> Problem {
    Problem { errors: violations.0.iter().map(|violation| json!(violation)).collect() }
}

/// An executor that can locate the errors lists them in its details.
fn of_failure(failure: ToolFailure) -> Problem {
    match failure.details.as_ref().and_then(|details| details.get("errors")?.as_array()) {
        Some(errors) if !errors.is_empty() => Problem { errors: errors.clone() },
        _ => Problem::new("", failure.message),
    }
}
