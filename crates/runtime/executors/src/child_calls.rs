//! `context.api.callTool`: a call that a tool's code makes, and waits for. It is an ordinary
//! request of the agent that asked for the tool, with the fields `parent` and `awaited`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{
    AccessList, Breadcrumbs, CallState, Created, ErrorCode, MAX_DEADLINE_MS, NewBreadcrumb, OpError, ResponseStatus,
    StoreError, ToolFailure, ToolRequest, ToolResponse,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::ToolCall;
use crate::host_ops::op_error;
use crate::provenance::Provenance;

/// The pauses between looks for the response, in case no event announces it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What a runner does for a call that waits for another one.
pub trait ChildCallHost: Send + Sync + 'static {
    /// Called before the request is written. The error says why the call cannot wait now.
    ///
    /// The request can be changed: it must not be seen by more agents than the call's own.
    fn prepare(self: Arc<Self>, request: &mut NewBreadcrumb) -> Result<Box<dyn ChildWait>, OpError>;
}

/// The wait for one call, until it is dropped.
pub trait ChildWait: Send + Sync {
    /// The call waits for this request from now on. If it ends first, the host cancels the request.
    /// The result is notified when the response may have been written.
    fn begin(&mut self, request: Uuid) -> Arc<Notify>;

    /// The response was written.
    fn answered(&mut self);
}

/// Outside of a runner: the response is found by looking for it, and nothing is cancelled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unhosted;

impl ChildCallHost for Unhosted {
    fn prepare(self: Arc<Self>, _request: &mut NewBreadcrumb) -> Result<Box<dyn ChildWait>, OpError> {
        Ok(Box::new(Self))
    }
}

impl ChildWait for Unhosted {
    fn begin(&mut self, _request: Uuid) -> Arc<Notify> {
        Arc::default()
    }

    fn answered(&mut self) {}
}

/// The call of another tool by a native one, as `context.api.callTool` makes it: an ordinary
/// request of the same agent, under all its limits. `permissions.tools` do not apply.
pub async fn call_tool(call: &ToolCall, tool: &str, input: Value) -> Result<Value, ToolFailure> {
    let calls = ChildCalls::of(call);
    let ended = async {
        let mut request = calls.request(tool, input, CallOptions::default())?;
        Provenance::of(call).mark_request(&mut request)?;
        calls.call(request).await
    };
    let (_, response) = ended.await.map_err(|error| {
        let code = error.name.parse::<ErrorCode>().ok();
        ToolFailure::new(code.unwrap_or(ErrorCode::ExecutionFailed), error.message)
    })?;
    if response.status == ResponseStatus::Success {
        return Ok(response.output.unwrap_or_default());
    }
    let code = response.error_code.unwrap_or(ErrorCode::ExecutionFailed);
    let mut failure =
        ToolFailure::new(code, response.error.unwrap_or_default()).retryable(response.is_retryable.unwrap_or_default());
    failure.details = response.error_details.filter(|details| !details.is_null());
    Err(failure)
}

/// The third argument of `callTool`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallOptions {
    timeout_ms: Option<u64>,
    max_result_chars: Option<u64>,
    version: Option<i64>,
    definition_hash: Option<String>,
}

/// The calls of one attempt.
pub(crate) struct ChildCalls {
    store: Arc<dyn Breadcrumbs>,
    host: Arc<dyn ChildCallHost>,
    allowed: AccessList,
    /// When the attempt's own time is over.
    ends: Instant,
    parent: Uuid,
    workspace: Option<String>,
    /// How often the attempt made each request.
    made: Mutex<HashMap<String, u32>>,
}

impl ChildCalls {
    pub fn of(call: &ToolCall) -> Self {
        Self {
            store: call.breadcrumbs.clone(),
            host: call.child_calls.clone(),
            allowed: call.definition.permissions.tools.clone(),
            ends: Instant::now() + call.limits.timeout(),
            parent: call.request.id,
            workspace: call.request.workspace.clone(),
            made: Mutex::default(),
        }
    }

    /// Whether `permissions.tools` allow a call of this tool. A request without a tool is refused
    /// when it is written.
    pub fn check(&self, tool: &str) -> Result<(), OpError> {
        if tool.is_empty() || self.allowed.grants(tool) {
            return Ok(());
        }
        let message = match &self.allowed {
            AccessList::Listed(_) => {
                format!("{tool:?} is not among the tools in the tool's permissions.tools; add it there")
            }
            _ => format!("the tool cannot call other tools; add {tool:?} to permissions.tools"),
        };
        Err(OpError::new("PermissionDenied", message))
    }

    pub fn request(&self, tool: &str, input: Value, options: CallOptions) -> Result<NewBreadcrumb, OpError> {
        let left = self.ends.saturating_duration_since(Instant::now()).as_millis() as u64;
        let timeout_ms = options.timeout_ms.unwrap_or(MAX_DEADLINE_MS);
        let mut request = ToolRequest::record(tool, input, None, self.workspace.as_deref());
        let fields = [
            ("deadline_ms", Some(json!(timeout_ms.min(left.max(1))))),
            ("max_result_chars", options.max_result_chars.map(Value::from)),
            ("version", options.version.map(Value::from)),
            ("definition_hash", options.definition_hash.map(Value::from)),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                request.context.insert(field.into(), value);
            }
        }
        request.check().map_err(|found| {
            // As the tool's author names it.
            let text = found.to_string().replace("context.deadline_ms", "timeout_ms").replace("context.", "");
            OpError::new("InvalidArguments", format!("callTool: {text}"))
        })?;
        Ok(request)
    }

    /// Writes the request and waits for its response. Returns the id of the request, and the
    /// response.
    pub async fn call(&self, mut request: NewBreadcrumb) -> Result<(Uuid, ToolResponse), OpError> {
        let mut wait = self.host.clone().prepare(&mut request)?;
        request.context.insert("awaited".into(), true.into());
        let key = self.key(&request);
        let mut repeat = 0;
        loop {
            // An earlier attempt made the same call. A success is used again, and so is a call that
            // still runs. A failure may be due to the end of that attempt.
            let key = key.as_ref().map(|key| format!("{key}:{repeat}"));
            let created = self.store.create(request.clone(), key.as_deref()).await.map_err(|error| op_error(&error))?;
            let response = self.response(&created, &mut *wait).await.map_err(|error| op_error(&error))?;
            if !created.replayed || response.status == ResponseStatus::Success {
                return Ok((created.id, response));
            }
            repeat += 1;
        }
    }

    /// The same for the same call of another attempt: it has the request's content, and how often
    /// this attempt has made such a request. `None` outside of a runner, where runs are not
    /// attempts.
    fn key(&self, request: &NewBreadcrumb) -> Option<String> {
        if self.parent.is_nil() {
            return None;
        }
        let fingerprint = NewBreadcrumb { tags: Vec::new(), ..request.clone() }.fingerprint();
        let mut made = self.made.lock();
        let count = made.entry(fingerprint.clone()).or_default();
        *count += 1;
        Some(format!("callTool:{}:{fingerprint}:{count}", self.parent))
    }

    async fn response(&self, created: &Created, wait: &mut dyn ChildWait) -> Result<ToolResponse, StoreError> {
        let announced = wait.begin(created.id);
        let mut pause = FIRST_PAUSE;
        loop {
            let call = self.store.call(created.id).await?;
            if let (CallState::Finished, Some(response)) = (call.state, call.response) {
                let record = self.store.get(response).await?;
                wait.answered();
                return ToolResponse::from_context(&record.context)
                    .map_err(|error| StoreError::Internal(format!("a response is not well-formed: {error}")));
            }
            tokio::select! {
                () = announced.notified() => {}
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }
}

/// What `callTool` returns: `{"output"}`, or `{"failure"}` with `code`, `message`, `tool`,
/// `requestId`, `details` and `is_retryable`.
pub(crate) fn call_result(request: Uuid, response: &ToolResponse) -> Value {
    if response.status == ResponseStatus::Success {
        return json!({"output": response.output});
    }
    json!({"failure": {
        "code": response.error_code,
        "message": response.error,
        "tool": response.tool,
        "requestId": request,
        "details": response.error_details,
        "is_retryable": response.is_retryable.unwrap_or_default(),
    }})
}
