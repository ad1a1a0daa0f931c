//! Checks whether a tool's code can be loaded. The compiler only removes the types; other errors
//! show up when the engine evaluates the code.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{BodyStream, ErrorCode, FetchRequest, FetchResponse, Isolation, Limits, OpError, ToolFailure};
use rcrt_sandbox::{ApiCall, HostOps, Invocation, RequestContext, Sandbox, Script, Task};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::source_position::source_position;

/// The most processor time that a tool's code can use before `execute` is called, in milliseconds,
/// even if its limits for calls are higher.
const MAX_LOAD_MS: u64 = 5_000;
const MIN_LOAD_MS: u64 = 1_000;
/// The wall time for the same. It is larger because a busy machine says nothing about the tool.
const TIMEOUT_MS: u64 = 15_000;
/// How long to wait for a worker. If all stay busy, the version is offered without this check.
const PATIENCE: Duration = Duration::from_secs(20);

/// Evaluates the code once, without host ops, and does not call `execute`.
pub async fn check(
    sandbox: &Sandbox,
    owner_id: Uuid,
    script: Arc<Script>,
    mut limits: Limits,
) -> Result<(), ToolFailure> {
    // A tool with a low `timeout_ms` can still have a lot of code to load. Its `cpu_ms` applies.
    limits.cpu_ms = Some(limits.cpu_ms().min(limits.timeout_ms.clamp(MIN_LOAD_MS, MAX_LOAD_MS)));
    limits.timeout_ms = TIMEOUT_MS;
    let invocation = Invocation {
        task: Task::Check,
        owner_id,
        script: script.clone(),
        input: Value::Null,
        request: RequestContext::default(),
        secrets: BTreeMap::new(),
        limits,
        isolation: Isolation::Process,
        hrtime: false,
        seed: None,
    };
    let checked = sandbox.run(invocation, Arc::new(NoHostOps), CancellationToken::new());
    let failure = match tokio::time::timeout(PATIENCE, checked).await.map(|outcome| outcome.result) {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(failure)) if !is_of_the_machine(&failure) => failure,
        unchecked => {
            let reason = unchecked.ok().and_then(Result::err).map(|failure| failure.message);
            tracing::warn!(
                file = script.file_name,
                ?reason,
                "no worker was available; the tool is offered without a check of its code"
            );
            return Ok(());
        }
    };
    Err(load_failure(failure, &script, &limits))
}

/// The failure is about the machine, not about the code; a retry can succeed.
fn is_of_the_machine(failure: &ToolFailure) -> bool {
    match failure.code {
        ErrorCode::Cancelled => true,
        ErrorCode::ExecutionFailed => failure.is_retryable,
        _ => false,
    }
}

fn load_failure(mut failure: ToolFailure, script: &Script, limits: &Limits) -> ToolFailure {
    let within = match (failure.code, failure.details.as_ref().and_then(|details| details.get("limit")?.as_str())) {
        (ErrorCode::Timeout, _) => Some(format!("{} ms", limits.timeout_ms)),
        (ErrorCode::ResourceExhausted, Some("cpu_ms")) => Some(format!("{} ms of processor time", limits.cpu_ms())),
        _ => None,
    };
    if let Some(within) = within {
        failure.message = format!("the code outside of execute did not end within {within}");
    }
    if let Some(cause) = failure.stated_cause() {
        failure.message = format!("{}; caused by {cause}", failure.message);
    }
    let mut error = json!({"field": "code.source", "message": failure.message});
    if let (Some((line, column)), Some(error)) = (source_position(&failure, &script.file_name), error.as_object_mut()) {
        error.insert("line".into(), line.into());
        error.insert("column".into(), column.into());
    }
    let message = format!("{} cannot be loaded: {}", script.file_name, failure.message);
    ToolFailure::new(failure.code, message).with_details(json!({"errors": [error]}))
}

struct NoHostOps;

#[async_trait]
impl HostOps for NoHostOps {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("PermissionDenied", "fetch works only in execute, not while the code is loaded"))
    }

    async fn api(&self, _call: ApiCall) -> Result<Value, OpError> {
        Err(OpError::new("PermissionDenied", "context.api works only in execute"))
    }
}
