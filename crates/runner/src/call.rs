//! One call's way: its tool, its input, its secrets, the run, the output, the answer.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use breadcrumb::{
    Breadcrumbs, Claim, ErrorCode, StoreError, ToolFailure, ToolRequest, Violation, schema_names::TOOL_ERROR,
};
use executors::{Chain, ToolCall, ToolOutput};
use futures::FutureExt;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::answering::{Answer, Answering};
use crate::backoff::persist;
use crate::leases::{Held, Leases};
use crate::loading::Loading;
use crate::options::RunnerOptions;
use crate::registry::{Found, Registry, Tool};

pub(crate) struct Caller {
    pub store: Arc<dyn Breadcrumbs>,
    pub registry: Arc<Registry>,
    pub loading: Arc<Loading>,
    pub leases: Arc<Leases>,
    pub answering: Answering,
    pub options: RunnerOptions,
    /// The runner was told to stop: what is not started goes back.
    pub stop: CancellationToken,
    /// The time for running calls is over.
    pub drained: CancellationToken,
}

/// All that a run needs.
struct Ready {
    tool: Arc<Tool>,
    call: ToolCall,
}

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Lost,
    Cancelled,
    Drained,
    Overtime,
}

impl Caller {
    pub async fn run(&self, claim: Claim, held: Held) {
        let request = ToolRequest::from_breadcrumb(&claim.request).unwrap_or_else(|violations| {
            // The store takes no such request; a runner must not fall over it all the same.
            tracing::error!(%violations, "a request cannot be read");
            unreadable(&claim)
        });
        let answer = Answer { claim: &claim, held: &held, request: &request };
        let ready = tokio::select! {
            biased;
            () = held.lost.cancelled() => return,
            () = held.cancel.cancelled() => return self.answering.fail(&answer, None, cancelled()).await,
            () = self.stop.cancelled() => return self.answering.give_back(&answer).await,
            ready = self.prepare(&claim, &request) => ready,
        };
        let ready = match ready {
            Ok(ready) => ready,
            Err((tool, failure)) => return self.answering.fail(&answer, tool.as_deref(), failure).await,
        };
        let started = tokio::select! {
            biased;
            () = held.lost.cancelled() => return,
            started = persist("start a call", || self.store.start(held.lease, ready.call.limits.max_attempts)) => started,
        };
        match started {
            Ok(()) => self.attempt(&answer, ready).await,
            Err(StoreError::LeaseLost { .. }) => tracing::info!("the lease was lost before the start"),
            Err(error) => {
                tracing::error!(%error, "the call cannot be started");
                self.answering.give_back(&answer).await;
            }
        }
    }

    /// Everything before the start. The failures end the request; the tool, where it is known, is for the metrics.
    async fn prepare(&self, claim: &Claim, request: &ToolRequest) -> Result<Ready, (Option<Arc<Tool>>, ToolFailure)> {
        let tool = self.find(&request.tool).await.map_err(|failure| (None, failure))?;
        let ready = async {
            let (input, violations) = check(&tool, Side::Input, request.input.clone()).await?;
            if !violations.is_empty() {
                return Err(violated(
                    ErrorCode::InvalidArguments,
                    "the input does not fit the tool's input_schema",
                    &violations,
                ));
            }
            let secrets = self.secrets(&tool, request).await?;
            Ok(ToolCall {
                owner_id: claim.request.owner_id,
                tool_id: tool.id,
                tool_version: tool.version,
                definition: tool.definition.clone(),
                limits: tool.definition.limits,
                request: request.clone(),
                input,
                secrets,
                breadcrumbs: self.store.clone(),
                chain: Chain::of_request(&claim.request.tags),
            })
        };
        match ready.await {
            Ok(call) => Ok(Ready { tool, call }),
            Err(failure) => Err((Some(tool), failure)),
        }
    }

    async fn find(&self, name: &str) -> Result<Arc<Tool>, ToolFailure> {
        let mut found = self.registry.find(name);
        if !matches!(found, Found::Tool(_)) {
            // Written a moment ago, perhaps: the request may have overtaken the tool's event.
            if let Err(error) = persist("look for a tool", || self.loading.look_for(name)).await {
                tracing::warn!(%error, "the store cannot be asked for a tool");
            }
            found = self.registry.find(name);
        }
        match found {
            Found::Tool(tool) => Ok(tool),
            Found::Broken(problem) => {
                let message =
                    format!("no version of the tool {name:?} works: {} (see its {TOOL_ERROR})", problem.sentence());
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, message)
                    .with_details(json!({"errors": problem.errors})))
            }
            Found::Unknown { nearest } => {
                let mut message = format!("there is no tool {name:?}");
                if !nearest.is_empty() {
                    message = format!("{message}; did you mean {}?", nearest.join(" or "));
                }
                Err(ToolFailure::new(ErrorCode::ToolNotFound, message).with_details(json!({"nearest": nearest})))
            }
        }
    }

    async fn secrets(&self, tool: &Tool, request: &ToolRequest) -> Result<BTreeMap<String, String>, ToolFailure> {
        let names = &tool.definition.required_secrets;
        let mut values = BTreeMap::new();
        if names.is_empty() {
            return Ok(values);
        }
        let known =
            persist("list secrets", || self.store.secrets()).await.map_err(|error| secret_failure("", &error))?;
        let reason = format!("tool {}, request {}", tool.name(), request.request_id);
        for name in names {
            let Some(secret) = known.iter().find(|secret| secret.name == *name) else {
                let message = format!("the tool needs the secret {name:?}, which does not exist");
                return Err(ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(json!({"secret": name})));
            };
            let value = persist("decrypt a secret", || self.store.decrypt_secret(secret.id, &reason)).await;
            values.insert(name.clone(), value.map_err(|error| secret_failure(name, &error))?);
        }
        Ok(values)
    }

    async fn attempt(&self, answer: &Answer<'_>, ready: Ready) {
        let Ready { tool, call } = ready;
        let attempt = answer.claim.attempt;
        let began = Instant::now();
        let (output, stopped) = self.execute(&tool, call, answer.held).await;
        let elapsed = began.elapsed();
        let (result, metadata) = match output {
            Some(output) => (output.result, output.metadata),
            None => (Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the tool did not stop in time")), Map::new()),
        };
        let result = match stopped {
            Some(Stopped::Lost) => {
                tracing::warn!("the lease was lost while the tool ran; nothing is written");
                return;
            }
            Some(Stopped::Cancelled) => Err(cancelled()),
            Some(Stopped::Drained) => result.map_err(|_| drained(attempt)),
            Some(Stopped::Overtime) => {
                let message = format!("the tool ran longer than {} ms", tool.definition.limits.timeout_ms);
                Err(ToolFailure::new(ErrorCode::Timeout, message))
            }
            None => result,
        };
        let result = match result {
            Ok(output) => checked_output(&tool, output).await,
            failed => failed,
        };
        self.answering.finish(answer, &tool, result, elapsed, metadata).await;
    }

    /// Runs the tool, and stops it for whatever comes first. `None`: it did not stop, and was dropped.
    async fn execute(&self, tool: &Tool, call: ToolCall, held: &Held) -> (Option<ToolOutput>, Option<Stopped>) {
        let token = CancellationToken::new();
        let limit = call.limits.timeout() + self.options.overtime;
        let run = AssertUnwindSafe(tool.executor.execute(call, token.clone())).catch_unwind();
        tokio::pin!(run);
        let stopped = tokio::select! {
            output = &mut run => return (Some(output.unwrap_or_else(|_| panicked())), None),
            () = held.lost.cancelled() => Stopped::Lost,
            () = held.cancel.cancelled() => Stopped::Cancelled,
            () = self.drained.cancelled() => Stopped::Drained,
            () = sleep(limit) => Stopped::Overtime,
        };
        token.cancel();
        let output = timeout(self.options.grace, &mut run).await.ok();
        // What was lost meanwhile is lost, whatever was the reason before.
        let stopped = if held.lost.is_cancelled() { Stopped::Lost } else { stopped };
        (output.map(|output| output.unwrap_or_else(|_| panicked())), Some(stopped))
    }
}

#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

/// A large value against a costly schema takes its time: not on a thread that others wait for.
async fn check(tool: &Arc<Tool>, side: Side, value: Value) -> Result<(Value, Vec<Violation>), ToolFailure> {
    let tool = tool.clone();
    let check = move || {
        let schema = match side {
            Side::Input => &tool.input,
            Side::Output => &tool.output,
        };
        let violations = schema.check(&value);
        (value, violations)
    };
    tokio::task::spawn_blocking(check)
        .await
        .map_err(|error| ToolFailure::new(ErrorCode::ExecutionFailed, format!("the schema cannot be checked: {error}")))
}

async fn checked_output(tool: &Arc<Tool>, output: Value) -> Result<Value, ToolFailure> {
    let (output, violations) = check(tool, Side::Output, output).await?;
    if violations.is_empty() {
        return Ok(output);
    }
    Err(violated(ErrorCode::InvalidOutput, "the output does not fit the tool's output_schema", &violations))
}

fn unreadable(claim: &Claim) -> ToolRequest {
    ToolRequest {
        id: claim.request.id,
        request_id: claim.request.id.to_string(),
        tool: "(unreadable)".into(),
        input: Value::Null,
        workspace: claim.request.workspace().map(str::to_owned),
        agent_id: claim.request.created_by,
        trigger_event: None,
    }
}

fn cancelled() -> ToolFailure {
    ToolFailure::new(ErrorCode::Cancelled, "the request was cancelled")
}

fn drained(attempt: u32) -> ToolFailure {
    let message = format!(
        "the runner was stopped while the tool ran (attempt {attempt}); its effects may or may not have happened"
    );
    ToolFailure::new(ErrorCode::ExecutionFailed, message).retryable(true)
}

fn panicked() -> ToolOutput {
    tracing::error!("an executor panicked");
    let failure = ToolFailure::new(ErrorCode::ExecutionFailed, "the executor failed; this is a fault of the runtime");
    ToolOutput { result: Err(failure), metadata: Map::new() }
}

fn violated(code: ErrorCode, what: &str, violations: &[Violation]) -> ToolFailure {
    let first = violations.first().map(ToString::to_string).unwrap_or_default();
    ToolFailure::new(code, format!("{what}: {first}")).with_details(json!({"violations": violations}))
}

fn secret_failure(name: &str, error: &StoreError) -> ToolFailure {
    match error {
        StoreError::Forbidden(_) | StoreError::Unauthorized(_) => {
            ToolFailure::new(ErrorCode::PermissionDenied, format!("the runner may not read the secret {name:?}"))
        }
        other => {
            tracing::error!(secret = name, error = %other, "a secret cannot be read");
            ToolFailure::new(ErrorCode::ExecutionFailed, format!("the secret {name:?} cannot be read")).retryable(true)
        }
    }
}
