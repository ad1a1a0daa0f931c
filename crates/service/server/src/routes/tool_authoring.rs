//! Tools before they are offered: checked without being written, and published.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use chrono::Utc;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, ContextMatch, ContextPath, DRAFT_TAG, MatchOp,
    Role, RunnerInfo, Selector, StoreError, TEST_TOOL, ToolDefinition, ToolRequest, ToolResponse, Violations, is_draft,
    schema_names,
};
use rcrt_validate::{Author, Finding, Report};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::headers::{carry_traceparent, idempotency_key};
use crate::http::json_body::{JsonBody, OptionalBody};
use crate::http::path::PathTool;
use crate::http::problem::Problem;
use crate::routes::invoke::{self, Accepted};
use crate::routes::replies::Reply;

/// How long the validators may take, including the wait for the tenant's share.
const VALIDATION_TIME: Duration = Duration::from_secs(30);
/// The most findings of each kind in a response.
const MAX_FINDINGS: usize = 50;
/// The most records of one name that are looked at.
const MAX_SAME_NAME: u32 = 100;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// The context of a `tool.code.v1`.
    #[schema(value_type = Object)]
    pub tool_spec: Map<String, Value>,
}

/// What is wrong with a tool, or could be better.
#[derive(Serialize, ToSchema)]
pub struct ToolFinding {
    /// The field of the tool, such as `examples[0].input.a` or `code.source`.
    field: String,
    /// The rule's stable name, such as `no-eval`.
    rule: &'static str,
    message: String,
    /// In the code, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    /// How it is corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
pub struct ToolFindings {
    /// If there are any, the tool would not be offered. At most 50.
    errors: Vec<ToolFinding>,
    /// At most 50.
    warnings: Vec<ToolFinding>,
}

/// The result of the validators.
#[derive(Serialize, ToSchema)]
pub struct ToolValidation {
    /// Whether there are no errors.
    valid: bool,
    /// Identifies exactly this definition.
    #[schema(example = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    definition_hash: String,
    validation: ToolFindings,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Publishing {
    /// The record of the draft. Required if several agents have a draft with this name.
    tool_id: Option<Uuid>,
    /// The version of the record that was reviewed; the newest when absent.
    version: Option<i64>,
}

/// A draft that is now offered to everybody.
#[derive(Serialize, ToSchema)]
pub struct PublishedTool {
    tool_id: Uuid,
    name: String,
    /// The version of the record that is offered.
    record_version: i64,
}

impl From<Finding> for ToolFinding {
    fn from(finding: Finding) -> Self {
        let Finding { field, message, rule, line, column } = finding;
        Self { field, rule, message, line, column, fix: rcrt_validate::fix(rule) }
    }
}

/// Validate a tool
///
/// Runs the validators on a tool, as the runners do before they offer it, and writes nothing. A
/// private host must be allowed on all live runners. Otherwise it is an error, or a warning for a
/// curator, whose tool waits for it.
#[utoipa::path(post, path = "/tools/validate", tag = "tools", operation_id = "validate_tool",
    request_body = ToolSpec, responses((status = 200, body = ToolValidation)))]
pub async fn validate(caller: Caller, JsonBody(ToolSpec { tool_spec }): JsonBody<ToolSpec>) -> Reply<ToolValidation> {
    let (hash, _) = Breadcrumb::measure(&tool_spec);
    let report = validated(&caller, schema_names::TOOL_CODE, tool_spec).await?;
    let most = |findings: Vec<Finding>| findings.into_iter().take(MAX_FINDINGS).map(ToolFinding::from).collect();
    Ok(Json(ToolValidation {
        valid: report.is_ok(),
        definition_hash: format!("sha256:{hash}"),
        validation: ToolFindings { errors: most(report.errors), warnings: most(report.warnings) },
    }))
}

/// Test a tool
///
/// Validates the tool and runs its examples in the sandbox, as `test_tool` does. `output` has
/// `passed`, `validation` and `examples`. A runner in the server's process tests it without writing
/// anything. If none has room, the test is a call of `test_tool` in the queue: its request and
/// response are stored as those of every call, the headers are those of `invoke`, and the status is
/// 202 if it takes longer than the caller waits.
#[utoipa::path(post, path = "/tools/test", tag = "tools", operation_id = "test_tool",
    params(
        ("Prefer" = Option<String>, Header, description = "wait=<seconds>, respond-async (RFC 7240)"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, description = "1 to 255 characters, of your choice"),
    ),
    request_body = ToolSpec,
    responses(
        (status = 200, description = "Tested", body = ToolResponse),
        (status = 202, description = "No response yet", body = Accepted),
    ))]
pub async fn test(
    State(state): State<ServerState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(ToolSpec { tool_spec }): JsonBody<ToolSpec>,
) -> Result<Response, Problem> {
    // Also for a runner in this process, which needs no key.
    idempotency_key(&headers)?;
    let began = Instant::now();
    if let Some(tested) = state.tenancy.test_tool(caller.identity.clone(), tool_spec.clone()).await {
        let id = Uuid::now_v7();
        let request =
            ToolRequest { id, request_id: id.to_string(), tool: TEST_TOOL.to_owned(), ..ToolRequest::default() };
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        return Ok(Json(ToolResponse::new(&request, tested, took, Map::new(), Utc::now())).into_response());
    }
    let mut record = ToolRequest::record(TEST_TOOL, json!({"tool_spec": tool_spec}), None, None);
    carry_traceparent(&headers, &mut record);
    invoke::call(&state, &caller, record, None, &headers, None).await
}

/// Publish a draft
///
/// A draft is a version of a tool that only its author can call. From now on everybody can call it.
/// The tool keeps its author: triggered calls have the author's rights, and not those of the
/// curator. The body can be left out.
#[utoipa::path(post, path = "/tools/{name}/publish", tag = "tools", operation_id = "publish_tool",
    params(("name" = String, Path, min_length = 1, max_length = 200, pattern = "\\S")),
    request_body = Publishing, responses((status = 200, body = PublishedTool)))]
pub async fn publish(
    caller: Caller,
    PathTool(name): PathTool,
    OptionalBody(Publishing { tool_id, version }): OptionalBody<Publishing>,
) -> Reply<PublishedTool> {
    let same_name = named(&caller, &name).await?;
    let mut drafts = same_name.iter().filter(|item| is_draft(&item.tags) && tool_id.is_none_or(|id| id == item.id));
    let Some(draft) = drafts.next() else {
        return Err(Problem::tool_not_found(format!("there is no draft of a tool {name:?}"), Vec::new()));
    };
    if drafts.next().is_some() {
        let message =
            "is required: several agents have a draft with this name; GET /breadcrumbs?tag=tool:draft lists them";
        return Err(Problem::invalid("tool_id", message));
    }
    if let Some(other) = same_name.iter().find(|item| !is_draft(&item.tags) && item.id != draft.id) {
        let message = format!("is the name of another tool (record {}); delete or rename one of them", other.id);
        return Err(Problem::invalid("name", message));
    }
    let record = caller.store.get(draft.id).await?;
    let expected = version.unwrap_or(record.version);
    if record.version != expected {
        return Err(StoreError::VersionConflict { expected, actual: record.version }.into());
    }
    let schema = record.schema_name.clone().unwrap_or_default();
    let report = validated(&caller, &schema, record.context).await?;
    if !report.is_ok() {
        let mut found = Violations::default();
        for error in report.errors.into_iter().take(MAX_FINDINGS) {
            found.add(error.field, error.message);
        }
        return Err(found.into());
    }
    let tags = record.tags.into_iter().filter(|tag| tag != DRAFT_TAG).collect();
    let changes = BreadcrumbChanges { tags: Some(tags), ..BreadcrumbChanges::default() };
    let published = caller.store.update(draft.id, record.version, changes).await?;
    Ok(Json(PublishedTool { tool_id: draft.id, name, record_version: published.version }))
}

/// The tools of this name, drafts and others.
async fn named(caller: &Caller, name: &str) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    let path = ContextPath::try_from("$.name".to_owned()).map_err(StoreError::Internal)?;
    let mut found = Vec::new();
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        let condition = ContextMatch { path: path.clone(), op: MatchOp::Eq, value: name.into() };
        let selector =
            Selector { schema_name: Some(schema.to_owned()), context_match: vec![condition], ..Selector::default() };
        let query = BreadcrumbQuery { selector, limit: MAX_SAME_NAME, ..BreadcrumbQuery::default() };
        found.extend(caller.store.list(&query).await?);
    }
    Ok(found)
}

/// Validators parse code, so they run outside of the async runtime, in the tenant's fair share.
async fn validated(caller: &Caller, schema: &str, context: Map<String, Value>) -> Result<Report, Problem> {
    let allowed = RunnerInfo::all_allow(&caller.store.runners().await?);
    let (schema, is_curator) = (schema.to_owned(), caller.identity.has(Role::Curator));
    let rules = move |definition: &ToolDefinition| {
        if is_curator {
            rcrt_validate::curators_tool_allowing(definition, &allowed)
        } else {
            rcrt_validate::tool_allowing(definition, Author::User, &allowed)
        }
    };
    let check = move || rcrt_validate::context_with(&schema, &context, rules).0;
    let until = Instant::now() + VALIDATION_TIME;
    rcrt_compute::pool()
        .run_until(caller.identity.owner_id, until, check)
        .await
        .map_err(|error| StoreError::Busy(format!("the validators did not run: {error}; try again later")).into())
}
