//! What the code of one call can ask for: fetch through the egress gate, and `context.api` on the
//! store.

use std::sync::Arc;

use async_trait::async_trait;
use opentelemetry::trace::SpanKind;
use rcrt_breadcrumb::{
    BodyStream, BreadcrumbChanges, BreadcrumbQuery, BreadcrumbView, Breadcrumbs, ContextMatch, DESCENDANTS,
    FetchRequest, FetchResponse, LimitName, LimitReached, NewBreadcrumb, OpError, RequestKind, Search, SearchMode,
    Selector, StoreError, ToolRequest, schema_names,
};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Origin, Redaction, RequestObserver, Vault, trace};
use rcrt_sandbox::{ApiCall, CallObserver};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::call_quota::CallQuota;
use crate::child_calls::{ChildCalls, call_result};
use crate::provenance::Provenance;
use crate::{CallDebug, EffectGate, NeverOpened, ProgressSink, ToolCall};

/// The host ops of one call, under its tool's permissions. They wait until the call's effect gate
/// is open. They read what the agent that asked for the call can read. Writes are attributed to the
/// runner's agent, except requests and private records, which belong to the agent that asked.
pub struct CallHostOps {
    egress: Arc<Egress>,
    rules: NetRules,
    connections: Connections,
    breadcrumbs: Arc<dyn Breadcrumbs>,
    tool: String,
    tool_id: Uuid,
    origin: Origin,
    vault: Arc<Vault>,
    request_id: String,
    required_secrets: Vec<String>,
    provenance: Provenance,
    child_calls: ChildCalls,
    progress: Arc<dyn ProgressSink>,
    debug: Option<Arc<CallDebug>>,
    quota: CallQuota,
    effect_gate: EffectGate,
    rcrt_compat: bool,
}

impl CallHostOps {
    /// The error names the entry of the tool's `permissions.net` that cannot be parsed.
    pub fn new(egress: Arc<Egress>, call: &ToolCall) -> Result<Self, String> {
        Ok(Self {
            egress,
            rules: NetRules::read(&call.definition.permissions.net)?,
            connections: Connections::default(),
            breadcrumbs: call.breadcrumbs.clone(),
            tool: call.definition.name.clone(),
            tool_id: call.tool_id,
            origin: Origin::from(call),
            vault: call.secrets.clone(),
            request_id: call.request.request_id.clone(),
            required_secrets: call.definition.required_secrets.clone(),
            provenance: Provenance::of(call),
            child_calls: ChildCalls::of(call),
            progress: call.progress.clone(),
            debug: call.debug.clone(),
            quota: CallQuota::default(),
            effect_gate: call.effect_gate.clone(),
            rcrt_compat: false,
        })
    }

    /// With `rcrt_compat`, unknown and null fields of an argument are ignored, and requests are
    /// read, as over HTTP.
    #[must_use]
    pub fn with_rcrt_compat(self, rcrt_compat: bool) -> Self {
        Self { rcrt_compat, ..self }
    }

    fn read<T: DeserializeOwned>(&self, method: &str, mut value: Value) -> Result<T, OpError> {
        if self.rcrt_compat
            && let Value::Object(fields) = &mut value
        {
            fields.retain(|name, value| !value.is_null() && has_field::<T>(name));
        }
        read(method, value)
    }

    async fn get(&self, id: &str) -> Result<Value, OpError> {
        let id = record_id("getBreadcrumb", id)?;
        to_value(BreadcrumbView::from(self.breadcrumbs.get(id).await.map_err(|error| op_error(&error))?))
    }

    /// The record as a model sees it.
    async fn view(&self, id: &str) -> Result<Value, OpError> {
        let id = record_id("viewBreadcrumb", id)?;
        to_value(self.breadcrumbs.view(id).await.map_err(|error| op_error(&error))?)
    }

    async fn create(&self, record: Value) -> Result<Value, OpError> {
        self.quota.take(Some(&record))?;
        let record = cleared(self.vault.outward(), record).await?;
        let mut record: NewBreadcrumb = self.read("createBreadcrumb", record)?;
        refuse_runner_owned(record.schema_name.as_deref())?;
        if self.rcrt_compat {
            ToolRequest::adopt_session_id(&mut record);
        } else {
            ToolRequest::check_spelling(&record).map_err(|found| op_error(&found.into()))?;
        }
        if let Some(kind) = RequestKind::of(record.schema_name.as_deref()) {
            // RCRT's tools state no such permission.
            if !self.rcrt_compat {
                self.child_calls.check(ToolRequest::tool_of(kind, &record.context))?;
            }
            self.provenance.mark_request(&mut record)?;
        } else {
            self.provenance.mark(&mut record.tags, &[], 1);
        }
        let created = self.breadcrumbs.create(record, None).await.map_err(|error| op_error(&error))?;
        Ok(json!({"id": created.id, "version": created.version}))
    }

    /// Whether the tool's permissions allow a call of this other tool.
    pub fn check_call(&self, tool: &str) -> Result<(), OpError> {
        self.child_calls.check(tool)
    }

    /// Requests the tool and waits for its response.
    async fn call_tool(&self, tool: &str, input: Value, options: Value) -> Result<Value, OpError> {
        self.check_call(tool)?;
        self.quota.take(Some(&input))?;
        let input = cleared(self.vault.outward(), input).await?;
        let mut request = self.child_calls.request(tool, input, self.read("callTool", options)?)?;
        self.provenance.mark_request(&mut request)?;
        let (request, response) = self.child_calls.call(request).await?;
        Ok(call_result(request, &response))
    }

    async fn update(&self, id: &str, version: i64, changes: Value) -> Result<Value, OpError> {
        self.quota.take(Some(&changes))?;
        let changes = cleared(self.vault.outward(), changes).await?;
        let id = record_id("updateBreadcrumb", id)?;
        let mut changes: BreadcrumbChanges = self.read("updateBreadcrumb", changes)?;
        refuse_runner_owned(changes.schema_name.as_deref())?;
        let record = self.breadcrumbs.get(id).await.map_err(|error| op_error(&error))?;
        refuse_runner_owned(record.schema_name.as_deref())?;
        if self.provenance.marks() || changes.tags.is_some() {
            let before = record.tags.clone();
            self.provenance.mark(changes.tags.get_or_insert(record.tags), &before, version.saturating_add(1));
        }
        let written = self.breadcrumbs.update(id, version, changes).await.map_err(|error| op_error(&error))?;
        to_value(BreadcrumbView::from(written))
    }

    async fn delete(&self, id: &str) -> Result<Value, OpError> {
        self.quota.take(None)?;
        let id = record_id("deleteBreadcrumb", id)?;
        refuse_runner_owned(self.breadcrumbs.get(id).await.map_err(|error| op_error(&error))?.schema_name.as_deref())?;
        self.breadcrumbs.delete(id, None).await.map_err(|error| op_error(&error))?;
        Ok(json!({"id": id, "deleted": true}))
    }

    async fn search(&self, query: Value) -> Result<Value, OpError> {
        let query: BreadcrumbSearch = self.read("searchBreadcrumbs", query)?;
        let BreadcrumbSearch { tag, any_tags, all_tags, schema_name, context_match, exclude_runtime, .. } = query;
        let query = BreadcrumbQuery {
            selector: with_tag(Selector { any_tags, all_tags, schema_name, context_match, exclude_runtime }, tag),
            limit: query.limit.unwrap_or(rcrt_breadcrumb::DEFAULT_PAGE),
            offset: query.offset.unwrap_or(0),
            include_context: query.include_context.unwrap_or(false),
        };
        query.check().map_err(|violations| op_error(&violations.into()))?;
        to_value(self.breadcrumbs.list(&query).await.map_err(|error| op_error(&error))?)
    }

    /// Semantic and full-text search, the store's default mode.
    async fn vector_search(&self, query: Value) -> Result<Value, OpError> {
        let query: VectorQuery = self.read("vectorSearch", query)?;
        let VectorQuery { q, qvec, mode, nn, tag, any_tags, all_tags, schema_name, .. } = query;
        let (context_match, exclude_runtime) = (query.context_match, query.exclude_runtime);
        let search = Search {
            q,
            qvec,
            mode,
            nn: nn.unwrap_or(5),
            selector: with_tag(Selector { any_tags, all_tags, schema_name, context_match, exclude_runtime }, tag),
            include_context: query.include_context.unwrap_or(true),
            ..Search::default()
        };
        search.check().map_err(|violations| op_error(&violations.into()))?;
        to_value(self.breadcrumbs.search(&search).await.map_err(|error| op_error(&error))?.items)
    }

    async fn secret(&self, wanted: &str, reason: &str) -> Result<Value, OpError> {
        self.quota.take_secret()?;
        let denied = || {
            let message = format!("the secret {wanted:?} is not among the tool's required_secrets");
            OpError::new("PermissionDenied", message)
        };
        let by_id = wanted.parse::<Uuid>().ok();
        let is_its_own =
            |name: &str| self.required_secrets.iter().any(|one| one == name) || self.vault.shown_as(name).is_some();
        // Checked before the store is read: a tool learns nothing about secrets of other tools.
        if by_id.is_none() && !is_its_own(wanted) {
            return Err(denied());
        }
        let secrets = self.breadcrumbs.secrets().await.map_err(|error| op_error(&error))?;
        let found = secrets.into_iter().find(|secret| match by_id {
            Some(id) => secret.id == id && is_its_own(&secret.name),
            None => secret.name == wanted,
        });
        let Some(secret) = found else {
            return Err(match by_id {
                Some(_) => denied(),
                None => OpError::new("NotFound", format!("the secret {wanted:?} does not exist")),
            });
        };
        // The audit log stores 1000 characters, and the caller chooses the request's id.
        let request_id: String = self.request_id.chars().take(300).collect();
        let reason: String = reason.chars().take(400).collect();
        let reason: String = format!("tool {}, request {request_id}: {reason}", self.tool).chars().take(1000).collect();
        // Writes the audit log, and checks that the grant still exists. The tool gets the value
        // from the start of the call: the redaction would not know a newer one.
        let decrypted = self.breadcrumbs.decrypt_secret(secret.id, &reason, Some(self.tool_id)).await;
        decrypted.map_err(|error| op_error(&error))?;
        let shown = self.vault.shown_as(&secret.name);
        shown
            .map(Value::from)
            .ok_or_else(|| OpError::new("NotFound", format!("{wanted:?} was not available when the call started")))
    }
}

#[async_trait]
impl rcrt_sandbox::HostOps for CallHostOps {
    async fn fetch(&self, request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        self.wait_for_effect_gate().await?;
        let (rules, vault, connections) = (&self.rules, &self.vault, &self.connections);
        let observer = self.debug.clone().map(|debug| -> Arc<dyn RequestObserver> { debug });
        let (origin, observer) = (Some(self.origin), observer.as_ref());
        let ask = EgressContext { tool: &self.tool, rules, vault, connections, origin, observer };
        self.egress.fetch(ask, request, body).await
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        self.wait_for_effect_gate().await?;
        let name = method(&call);
        let step = self.debug.as_ref().map(|debug| debug.begin_api(name.trim_start_matches("api ")));
        let result = trace::op(name, SpanKind::Internal, Vec::new(), self.perform(call)).await;
        if let Some(step) = step {
            step.end(&result);
        }
        result
    }

    fn observer(&self) -> Option<&dyn CallObserver> {
        self.debug.as_deref().map(|debug| -> &dyn CallObserver { debug })
    }

    fn progress(&self, fraction: Option<f64>, message: &str) {
        let message = self.vault.outward().text(message);
        // One line for a person, without control characters that a terminal would execute.
        let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.progress.report(fraction, line.trim());
    }
}

impl CallHostOps {
    async fn wait_for_effect_gate(&self) -> Result<(), OpError> {
        let never = |NeverOpened| OpError::new("Unavailable", "the request was not written");
        self.effect_gate.wait().await.map_err(never)
    }

    async fn perform(&self, call: ApiCall) -> Result<Value, OpError> {
        let answer = match call {
            ApiCall::GetBreadcrumb { id } => self.get(&id).await,
            ApiCall::ViewBreadcrumb { id } => self.view(&id).await,
            ApiCall::CreateBreadcrumb { record } => self.create(record).await,
            ApiCall::UpdateBreadcrumb { id, version, changes } => self.update(&id, version, changes).await,
            ApiCall::DeleteBreadcrumb { id } => self.delete(&id).await,
            ApiCall::SearchBreadcrumbs { query } => self.search(query).await,
            ApiCall::VectorSearch { query } => self.vector_search(query).await,
            ApiCall::CallTool { tool, input, options } => self.call_tool(&tool, input, options).await,
            // Not redacted: the tool is allowed to see what this returns.
            ApiCall::GetSecret { id, reason } => return self.secret(&id, &reason).await,
        };
        let inward = self.vault.inward();
        cleared(inward, answer.map_err(|error| inward.refusal(error))?).await
    }
}

/// The name of the span for this method.
fn method(call: &ApiCall) -> &'static str {
    match call {
        ApiCall::GetBreadcrumb { .. } => "api getBreadcrumb",
        ApiCall::ViewBreadcrumb { .. } => "api viewBreadcrumb",
        ApiCall::CreateBreadcrumb { .. } => "api createBreadcrumb",
        ApiCall::UpdateBreadcrumb { .. } => "api updateBreadcrumb",
        ApiCall::DeleteBreadcrumb { .. } => "api deleteBreadcrumb",
        ApiCall::SearchBreadcrumbs { .. } => "api searchBreadcrumbs",
        ApiCall::VectorSearch { .. } => "api vectorSearch",
        ApiCall::GetSecret { .. } => "api getSecret",
        ApiCall::CallTool { .. } => "api callTool",
    }
}

/// `searchBreadcrumbs`: the fields of a selector, plus `tag` for one more required tag.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BreadcrumbSearch {
    tag: Option<String>,
    any_tags: Vec<String>,
    all_tags: Vec<String>,
    schema_name: Option<String>,
    context_match: Vec<ContextMatch>,
    exclude_runtime: bool,
    limit: Option<u32>,
    offset: Option<u32>,
    include_context: Option<bool>,
}

/// `vectorSearch`: the question or its vector, the number of results, and a selector.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VectorQuery {
    q: Option<String>,
    qvec: Option<Vec<f32>>,
    mode: Option<SearchMode>,
    nn: Option<u32>,
    tag: Option<String>,
    #[serde(default)]
    any_tags: Vec<String>,
    #[serde(default)]
    all_tags: Vec<String>,
    schema_name: Option<String>,
    #[serde(default)]
    context_match: Vec<ContextMatch>,
    #[serde(default)]
    exclude_runtime: bool,
    include_context: Option<bool>,
}

fn with_tag(mut selector: Selector, tag: Option<String>) -> Selector {
    selector.all_tags.extend(tag);
    selector
}

/// The value can be large, so it is redacted on a separate thread.
async fn cleared(redaction: &Arc<Redaction>, mut value: Value) -> Result<Value, OpError> {
    if redaction.is_idle() {
        return Ok(value);
    }
    let redaction = redaction.clone();
    let clear = move || {
        redaction.json(&mut value);
        value
    };
    let failed = |error| OpError::new("Unavailable", format!("the secrets cannot be redacted from a value: {error}"));
    tokio::task::spawn_blocking(clear).await.map_err(failed)
}

/// Records that are trusted because the runner's agent wrote them. A tool's write would count as
/// the runner's.
fn refuse_runner_owned(schema_name: Option<&str>) -> Result<(), OpError> {
    let message = match schema_name {
        Some(schema_names::TOOL_RESPONSE) => {
            "a tool cannot write, change or delete a tool.response.v1; what execute returns is the response"
        }
        Some(schema_names::TOOL_CREATE_RESPONSE) => {
            "a tool cannot write, change or delete a tool.create.response.v1; the runtime writes it"
        }
        Some(schema_names::TOOL_PROGRESS) => {
            "a tool cannot write, change or delete a tool.progress.v1; call context.progress(fraction, message)"
        }
        Some(schema_names::TOOL_LOG) => {
            "a tool cannot write, change or delete a tool.log.v1; call console.log in a call with debug"
        }
        Some(schema_names::TOOL_SHADOW) => {
            "a tool cannot write, change or delete a tool.shadow.v1; runners count the runs of shadows"
        }
        Some(schema_names::TOOL_CATALOG) => {
            "a tool cannot write, change or delete a tool.catalog.v1; the runner updates it when tools change"
        }
        Some(schema_names::TOOL_RUNNER) => {
            "a tool cannot write, change or delete a tool.runner.v1; each runner publishes its own"
        }
        // A schedule's calls run under the profiles that are stored in it.
        Some(schema_names::SCHEDULE) => {
            "a tool cannot write, change or delete a schedule.v1; call schedule_task, or cancel_scheduled_task"
        }
        Some(schema_names::A2A_AGENT) => {
            "a tool cannot write, change or delete an a2a.agent.v1; call register_agent, or unregister_agent"
        }
        Some(schema_names::A2A_TASK) => {
            "a tool cannot write, change or delete an a2a.task.v1; call invoke_agent, which writes it"
        }
        _ => return Ok(()),
    };
    Err(OpError::new("PermissionDenied", message))
}

fn record_id(method: &str, text: &str) -> Result<Uuid, OpError> {
    text.parse().map_err(|_| invalid(method, format!("id: {text:?} is not a valid record id; expected a UUID")))
}

fn read<T: DeserializeOwned>(method: &str, value: Value) -> Result<T, OpError> {
    if !value.is_object() {
        return Err(invalid(method, "the argument must be an object"));
    }
    T::deserialize(value).map_err(|error| invalid(method, error))
}

/// Whether `T`, which rejects unknown fields, has a field with this name.
fn has_field<T: DeserializeOwned>(name: &str) -> bool {
    let Err(error) = T::deserialize(json!({ name: null })) else { return true };
    !error.to_string().starts_with(&format!("unknown field `{name}`"))
}

fn invalid(method: &str, problem: impl std::fmt::Display) -> OpError {
    OpError::new("InvalidArguments", format!("{method}: {problem}"))
}

fn to_value(shape: impl serde::Serialize) -> Result<Value, OpError> {
    serde_json::to_value(shape).map_err(|error| OpError::new("Unavailable", error.to_string()))
}

/// A store error as the tool sees it. Internal errors are logged here and not shown.
pub(crate) fn op_error(error: &StoreError) -> OpError {
    let name = match error {
        StoreError::QuotaExceeded { quota, limit, .. } if quota == DESCENDANTS => {
            let reached = LimitReached { limit: LimitName::Descendants, allowed: *limit };
            return OpError::exhausted(reached, error.to_string());
        }
        StoreError::NotFound { .. } => "NotFound",
        StoreError::VersionConflict { .. } => "VersionConflict",
        StoreError::Invalid(_) | StoreError::IdempotencyMismatch => "InvalidArguments",
        StoreError::Unauthorized(_) | StoreError::Forbidden(_) => "PermissionDenied",
        StoreError::TooLarge { .. } | StoreError::QuotaExceeded { .. } => "ResourceExhausted",
        StoreError::Full
        | StoreError::QueueFull { .. }
        | StoreError::SecretKeyMissing(_)
        | StoreError::Busy(_)
        | StoreError::Unavailable(_)
        | StoreError::LeaseLost { .. }
        | StoreError::EventsMissed { .. } => "Unavailable",
        StoreError::Internal(detail) => {
            tracing::error!(detail, "the store failed during a tool's call");
            return OpError::new("Unavailable", "the store failed; try again");
        }
    };
    OpError::new(name, error.to_string())
}
