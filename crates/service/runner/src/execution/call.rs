//! One call: its tool, its input, its secrets, the run, the output, the response.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::context::FutureExt;
use rcrt_breadcrumb::{
    Breadcrumb, Breadcrumbs, Claim, ErrorCode, LimitName, LimitReached, NewBreadcrumb, Profiles, ResponseStatus,
    StoreError, ToolFailure, ToolRequest, Violation, Visibility,
};
use rcrt_egress::Vault;
use rcrt_executors::{EffectGate, ToolCall, ToolOutput, TriggerChain};
use rcrt_large_results::{WorkingMemory, shorten};
use rcrt_validate::Schema;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::with_retries;
use crate::dispatch::leases::{LeaseGuard, Leases};
use crate::dispatch::slots::Slot;
use crate::execution::deadline::Deadline;
use crate::execution::on_behalf_of::in_name_of;
use crate::execution::progress_writer::{self, ProgressWriter};
use crate::execution::request_event::request_event;
use crate::execution::response_writer::{Attempt, PendingResponse, ResponseWriter, inherited};
use crate::execution::running::{self, RunLimits, RunResult, Stopped};
use crate::execution::secrets;
use crate::execution::speculative_run::Prepared;
use crate::execution::stages::Stages;
use crate::execution::telemetry::{self, Invocation};
use crate::options::RunnerOptions;
use crate::registry::tool::Tool;
use crate::registry::tool_access::{Refusal, ToolAccess};

/// How long a claimed call can compute before it is started. Most calls finish within this time. It
/// is short, so that a call that kills its runner repeatedly is soon counted as an attempt.
const START_SOON: Duration = Duration::from_millis(5);

pub(crate) struct CallRunner {
    pub store: Arc<dyn Breadcrumbs>,
    pub tool_access: ToolAccess,
    pub leases: Arc<Leases>,
    pub responses: ResponseWriter,
    pub options: RunnerOptions,
    /// The runner is stopping: calls that have not started are released.
    pub stop: CancellationToken,
    /// The drain time is over: running calls are stopped.
    pub drained: CancellationToken,
}

/// A validated input, and what else the call needs.
struct Checked {
    input: Value,
    secrets: Arc<Vault>,
    /// The part of the call's `timeout_ms` that the checks used.
    took: Duration,
}

/// The state of a call in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartState {
    /// Claimed and not started.
    Claimed,
    /// It was written as running, with this number of attempts in total.
    Started { max_attempts: u32 },
}

/// A call that this runner holds.
pub(crate) struct AcceptedCall {
    pub claim: Claim,
    pub held: LeaseGuard,
    /// `None` if the call ran speculatively and no longer needs a slot.
    pub slot: Option<Slot>,
    pub progress: StartState,
    /// What was prepared before the request was written.
    pub speculative: Option<Result<Prepared, Refusal>>,
}

/// A call whose request is not written yet.
pub(crate) struct UncommittedCall {
    /// As it will be, but for the time.
    pub request: Breadcrumb,
    pub profiles: Profiles,
    /// Milliseconds until the request's deadline, counted from its writing.
    pub time_left_ms: Option<u64>,
}

/// The response of a call that has computed before its request was written.
pub(crate) struct UncommittedResponse {
    pub response: NewBreadcrumb,
    tool: Arc<Tool>,
    took: Duration,
    invocation: Invocation,
}

impl UncommittedResponse {
    /// The response was written together with its request.
    pub fn was_written(self) {
        telemetry::answered(Some(self.tool.name()), ResponseStatus::Success, self.took);
        drop(self.invocation);
    }
}

impl AcceptedCall {
    /// Whether it has computed, or failed, before its request was written.
    pub fn has_ended(&self) -> bool {
        self.speculative.as_ref().is_some_and(|speculative| speculative.as_ref().map_or(true, Prepared::has_ended))
    }
}

impl CallRunner {
    pub async fn run(&self, taken: AcceptedCall, stages: Stages) {
        let AcceptedCall { mut claim, held, mut slot, progress, speculative } = taken;
        // Removed from the record because it may be large and is needed only once.
        let input = take_input(&mut claim.request);
        let request = ToolRequest::from_breadcrumb(&claim.request).unwrap_or_else(|violations| {
            // The store refuses such a request. A runner must still survive one.
            tracing::error!(%violations, "a request cannot be read");
            unreadable(&claim)
        });
        let deadline = Deadline::after(claim.time_left_ms, &request);
        let invocation = Invocation::begin(claim.request.owner_id, claim.attempt, &request, &stages);
        tracing::Span::current().record("trace", invocation.trace_id());
        let (number, record, queued_at) = (claim.attempt, &claim.request, claim.queued_at);
        let attempt = Attempt { number, record, request: &request, queued_at, stages, invocation };
        let mut pending = PendingResponse { attempt, claim: &claim, held: &held, deadline, unstarted: None };
        let began = Instant::now();
        let preparing = async {
            match speculative {
                Some(prepared) => prepared,
                None => self.prepare(&claim, &request, input).await,
            }
        };
        let prepared = tokio::select! {
            biased;
            () = held.lost.cancelled() => return,
            () = held.cancel.cancelled() => Err(Refusal::failed(cancelled())),
            () = self.stop.cancelled() => return self.responses.release_unstarted(&held).await,
            () = Deadline::passed(deadline.as_ref()) => Err(Refusal::failed(late(deadline, "before the tool ran"))),
            prepared = preparing.with_context(pending.attempt.invocation.stage("load")) => prepared,
        };
        pending.attempt.stages.loaded(began.elapsed());
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(Refusal::ServedByPeer) => {
                drop(slot);
                return self.responses.release_unstarted(&held).await;
            }
            Err(Refusal::Failed { tool, failure }) => {
                drop(slot);
                return self.responses.fail(&pending, tool.as_deref(), failure).await;
            }
        };
        if let Some(slot) = &mut slot {
            slot.reclassify();
        }
        let max_attempts = prepared.tool.definition.limits.max_attempts;
        // If the tool has just changed, the store needs its new number of attempts.
        if progress == (StartState::Started { max_attempts }) {
            return self.attempt(pending, prepared, slot).await;
        }
        // Most calls finish at once and need no start: they had no effect that must not be
        // repeated.
        prepared.begin_speculatively(deadline.as_ref());
        tokio::select! {
            biased;
            () = held.lost.cancelled() => return,
            _ = timeout(START_SOON, prepared.compute()) => {}
        }
        if prepared.has_small_result() && self.options.takes_small_results(&request) {
            pending.unstarted = Some(max_attempts);
            return self.attempt(pending, prepared, slot).await;
        }
        let began = Instant::now();
        let start = with_retries("start a call", || self.store.start(held.lease, max_attempts));
        tokio::pin!(start);
        let started = loop {
            tokio::select! {
                biased;
                () = held.lost.cancelled() => return,
                started = &mut start => break started,
                () = prepared.compute(), if prepared.is_computing() => {}
            }
        };
        pending.attempt.stages.started(began.elapsed());
        match started {
            Ok(()) => self.attempt(pending, prepared, slot).await,
            Err(StoreError::LeaseLost { .. }) => tracing::info!("the lease was lost before the start"),
            Err(error) => {
                tracing::error!(%error, "the call cannot be started");
                drop(slot);
                self.responses.release_unstarted(&held).await;
            }
        }
    }

    /// Discards what was prepared before the request was written, if the tool has changed since.
    pub fn discard_if_changed(&self, taken: &mut AcceptedCall) {
        let AcceptedCall { claim, speculative, .. } = taken;
        let has_changed = |ready: &Prepared| !self.is_unchanged(&ready.tool, &claim.profiles);
        speculative.take_if(|speculative| speculative.as_ref().is_ok_and(has_changed));
    }

    /// Everything before the start. A failure becomes the response.
    async fn prepare(&self, claim: &Claim, request: &ToolRequest, input: Value) -> Result<Prepared, Refusal> {
        let tool = self.tool_access.find(&request.tool, &claim.profiles).await?;
        self.ready(tool, &claim.request, &claim.profiles, request, input).await
    }

    /// Prepares and begins a call of this tool before its request is written. `None` if that must
    /// wait for the write.
    pub async fn prepare_speculatively(
        &self,
        uncommitted: &mut UncommittedCall,
        tool: Arc<Tool>,
    ) -> Option<Result<Prepared, Refusal>> {
        // A long check waits in a queue. `run` does such checks, since it can react to a deadline,
        // a cancellation and a stop meanwhile.
        let is_quick = |input| tool.input.is_quick(input);
        if !tool.may_speculate() || !uncommitted.request.context.get("input").is_none_or(is_quick) {
            return None;
        }
        let input = take_input(&mut uncommitted.request);
        let Ok(request) = ToolRequest::from_breadcrumb(&uncommitted.request) else {
            return None;
        };
        let mut prepared = self.ready(tool, &uncommitted.request, &uncommitted.profiles, &request, input).await;
        if let Ok(prepared) = &mut prepared {
            prepared.begin_speculatively(Deadline::after(uncommitted.time_left_ms, &request).as_ref());
        }
        Some(prepared)
    }

    /// The response of a call that has computed before its request was written, if nothing else is
    /// left to do. `took`: the duration of the preparation.
    pub fn uncommitted_response(
        &self,
        uncommitted: &UncommittedCall,
        prepared: &Prepared,
        took: Duration,
    ) -> Option<UncommittedResponse> {
        let (tool, request) = (&prepared.tool, prepared.request());
        let is_whole = prepared.has_small_result() && prepared.progress_writer.is_flushed();
        if !is_whole || !self.options.takes_small_results(request) || !self.is_unchanged(tool, &uncommitted.profiles) {
            return None;
        }
        let (output, ran) = prepared.ended()?;
        let mut stages = Stages::uncommitted();
        stages.loaded(took);
        let invocation = Invocation::begin(uncommitted.request.owner_id, 1, request, &stages);
        invocation.runs(tool);
        invocation.ran(ran);
        stages.ran(ran);
        let (record, queued_at) = (&uncommitted.request, uncommitted.request.created_at);
        let attempt = Attempt { number: 1, record, request, queued_at, stages, invocation };
        let result = output.result.as_ref().ok()?.clone();
        let response = self.responses.speculative_response(&attempt, tool, result, ran, output.metadata.clone())?;
        Some(UncommittedResponse { response, tool: tool.clone(), took: ran, invocation: attempt.invocation })
    }

    fn is_unchanged(&self, tool: &Arc<Tool>, profiles: &Profiles) -> bool {
        self.tool_access.ready_now(tool.name(), profiles).is_some_and(|now| Arc::ptr_eq(&now, tool))
    }

    async fn ready(
        &self,
        tool: Arc<Tool>,
        record: &Breadcrumb,
        profiles: &Profiles,
        request: &ToolRequest,
        input: Value,
    ) -> Result<Prepared, Refusal> {
        let mut tool = tool;
        let checked = self.checked(&mut tool, profiles, request, input).await;
        let call = |checked| self.call(&tool, record, profiles, request, checked);
        match checked.and_then(call) {
            Ok((call, progress_writer)) => Ok(Prepared::new(tool, call, progress_writer)),
            Err(failure) => Err(Refusal::Failed { tool: Some(tool.candidate.clone()), failure }),
        }
    }

    /// The validated input and the tool's secrets. If a secret is missing, a tool that this one
    /// replaced may serve the call.
    async fn checked(
        &self,
        tool: &mut Arc<Tool>,
        profiles: &Profiles,
        request: &ToolRequest,
        mut input: Value,
    ) -> Result<Checked, ToolFailure> {
        let mut took = Duration::ZERO;
        loop {
            let began = Instant::now();
            let ends = began + tool.definition.limits.timeout().saturating_sub(took);
            let (checked, violations) = check(tool, Side::Input, input, ends).await?;
            took += began.elapsed();
            if !violations.is_empty() {
                return Err(violated(
                    ErrorCode::InvalidArguments,
                    "the input does not match the tool's input_schema",
                    &violations,
                ));
            }
            match secrets::granted_secrets(&*self.store, tool, request).await {
                Ok(secrets) => return Ok(Checked { input: checked, secrets, took }),
                Err(failure) if failure.code == ErrorCode::PermissionDenied => {
                    self.tool_access.readiness.check_soon();
                    let Some(other) = self.tool_access.replaced_tool(tool, profiles).await else { return Err(failure) };
                    (*tool, input) = (other, checked);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    fn call(
        &self,
        tool: &Tool,
        record: &Breadcrumb,
        profiles: &Profiles,
        request: &ToolRequest,
        Checked { input, secrets, took }: Checked,
    ) -> Result<(ToolCall, ProgressWriter), ToolFailure> {
        let mut limits = tool.definition.limits;
        limits.timeout_ms = limits.timeout_ms.saturating_sub(took.as_millis() as u64).max(1);
        let chain = TriggerChain::of_request(&record.tags);
        // A tool reads only what the agent that made the request can read.
        let own = in_name_of(&self.store, record.created_by).map_err(|error| {
            ToolFailure::new(
                ErrorCode::ExecutionFailed,
                format!("the agent that made the request cannot be used: {error}"),
            )
        })?;
        let visibility = inherited(record);
        let seen = (visibility, record.sensitivity);
        let progress_store = if visibility == Visibility::Private { &own } else { &self.store };
        let (progress, progress_writer) =
            progress_writer::channel(progress_store.clone(), request, seen, chain.clone(), secrets.clone());
        let mut request = request.clone();
        if request.trigger_event.is_none() && tool.definition.is_code() {
            request.trigger_event = Some(request_event(record, &input));
        }
        let call = ToolCall {
            owner_id: record.owner_id,
            tool_id: tool.id,
            tool_version: tool.version,
            definition: tool.definition.clone(),
            limits,
            request,
            input,
            secrets,
            breadcrumbs: own,
            chain,
            profiles: profiles.clone(),
            progress,
            deadline: None,
            effect_gate: EffectGate::opened(),
        };
        Ok((call, progress_writer))
    }

    async fn attempt(&self, mut pending: PendingResponse<'_>, prepared: Prepared, slot: Option<Slot>) {
        let deadline = pending.deadline;
        pending.attempt.invocation.runs(&prepared.tool);
        let allowed_ms = prepared.timeout_ms();
        let (tool, limits, progress_writer, run) = prepared.open_effect_gate(deadline.as_ref());
        let is_shortened = limits.timeout_ms < allowed_ms;
        let bounds = RunLimits {
            held: pending.held,
            deadline: deadline.as_ref(),
            drained: &self.drained,
            overtime: self.options.overtime,
            grace: self.options.grace,
        };
        let stage = pending.attempt.invocation.stage("run");
        let RunResult { output, took: elapsed, stopped } =
            running::run(run, limits.timeout(), progress_writer, bounds).with_context(stage).await;
        // The remaining steps need no worker: the next call can use it while this call's response
        // is written.
        drop(slot);
        pending.attempt.stages.ran(elapsed);
        let output = output.unwrap_or_else(|| {
            ToolOutput::new(
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the tool did not stop in time")),
                Map::new(),
            )
        });
        // The hold accounts for the result's memory. It is released with this function, when the
        // response is written.
        let ToolOutput { result, mut metadata, hold: _hold } = output;
        let result = match stopped {
            Some(Stopped::Lost) => {
                tracing::warn!("the lease was lost while the tool ran; nothing is written");
                return;
            }
            Some(Stopped::Cancelled) => Err(cancelled()),
            Some(Stopped::Deadline) => Err(late(deadline, "while the tool ran")),
            Some(Stopped::Drained) => result.map_err(|_| drained(pending.attempt.number)),
            Some(Stopped::Overtime) => Err(ran_too_long(&tool)),
            // The executor enforced the shortened time limit, and does not know that the deadline
            // shortened it.
            None if is_shortened && result.as_ref().is_err_and(|failure| failure.code == ErrorCode::Timeout) => {
                Err(late(deadline, "while the tool ran"))
            }
            // The check of the input shortened it.
            None if allowed_ms < tool.definition.limits.timeout_ms => result.map_err(|failure| match failure.code {
                ErrorCode::Timeout => ran_too_long(&tool),
                _ => failure,
            }),
            None => result,
        };
        let result = match result {
            Ok(output) => {
                checked_output(&tool, output, Instant::now() + limits.timeout().saturating_sub(elapsed)).await
            }
            failed => failed,
        };
        let result = match result {
            Ok(output) => {
                let chain = TriggerChain::of_request(&pending.claim.request.tags);
                let settings = &self.options.large_results;
                let memory = WorkingMemory::new(self.store.clone(), chain, pending.claim.profiles.clone());
                tokio::select! {
                    () = pending.held.lost.cancelled() => return,
                    () = pending.held.cancel.cancelled() => Err(cancelled()),
                    () = Deadline::passed(deadline.as_ref()) => Err(late(deadline, "while the result was written")),
                    handed_over = shorten(output, settings, pending.attempt.request, &memory) => {
                        metadata.extend(handed_over.metadata);
                        Ok(handed_over.output)
                    }
                }
            }
            failed => failed,
        };
        self.responses.finish(&pending, &tool, result, elapsed, metadata).await;
    }
}

fn take_input(request: &mut Breadcrumb) -> Value {
    request.context.remove("input").unwrap_or_else(|| Value::Object(Map::new()))
}

#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

impl Side {
    fn schema(self, tool: &Tool) -> &Schema {
        match self {
            Self::Input => &tool.input,
            Self::Output => &tool.output,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// Checking a large value against an expensive schema takes long. It runs outside of the async
/// runtime, in the tenant's fair share, and within the call's time limit.
async fn check(
    tool: &Arc<Tool>,
    side: Side,
    value: Value,
    deadline: Instant,
) -> Result<(Value, Vec<Violation>), ToolFailure> {
    let schema = side.schema(tool);
    if schema.is_quick(&value) {
        let violations = schema.check(&value);
        return Ok((value, violations));
    }
    let (definition, checked) = (&tool.definition, tool.clone());
    let check = move || {
        let violations = side.schema(&checked).check(&value);
        (value, violations)
    };
    rcrt_compute::pool().run_until(tool.owner_id, deadline, check).await.map_err(|failed| match failed {
        rcrt_compute::ComputeError::DeadlineExceeded => {
            let allowed = definition.limits.timeout_ms;
            let message = format!("the call's limit of {allowed} ms passed before its {} was checked", side.name());
            let reached = LimitReached { limit: LimitName::TimeoutMs, allowed };
            ToolFailure::new(ErrorCode::Timeout, message).with_details(json!(reached))
        }
        rcrt_compute::ComputeError::QueueFull => {
            ToolFailure::new(ErrorCode::ExecutionFailed, "too many calls wait for their checks; try again")
                .retryable(true)
        }
        rcrt_compute::ComputeError::Panicked => ToolFailure::new(
            ErrorCode::ExecutionFailed,
            "the check against the schema failed; this is a fault of the runtime",
        ),
    })
}

async fn checked_output(tool: &Arc<Tool>, output: Value, deadline: Instant) -> Result<Value, ToolFailure> {
    let (output, violations) = check(tool, Side::Output, output, deadline).await?;
    if violations.is_empty() {
        return Ok(output);
    }
    Err(violated(ErrorCode::InvalidOutput, "the output does not match the tool's output_schema", &violations))
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
        session: None,
        model: None,
        max_result_chars: None,
        deadline_ms: None,
        traceparent: None,
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

fn ran_too_long(tool: &Tool) -> ToolFailure {
    let allowed = tool.definition.limits.timeout_ms;
    ToolFailure::new(ErrorCode::Timeout, format!("the tool did not end within {allowed} ms"))
        .with_details(json!(LimitReached { limit: LimitName::TimeoutMs, allowed }))
}

fn late(deadline: Option<Deadline>, when: &str) -> ToolFailure {
    deadline
        .map_or_else(|| ToolFailure::new(ErrorCode::Timeout, "the deadline passed"), |deadline| deadline.failure(when))
}

fn violated(code: ErrorCode, what: &str, violations: &[Violation]) -> ToolFailure {
    let first = violations.first().map(ToString::to_string).unwrap_or_default();
    ToolFailure::new(code, format!("{what}: {first}")).with_details(json!({"violations": violations}))
}
