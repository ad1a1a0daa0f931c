//! One call: its tool, its input, its secrets, the run, the output, the response.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{
    Breadcrumb, Breadcrumbs, Claim, ErrorCode, LimitName, LimitReached, NewBreadcrumb, Profiles, ResponseStatus,
    StoreError, ToolFailure, ToolRequest, UncommittedCall, Violation, Visibility,
};
use executors::{EffectGate, ToolCall, ToolOutput, TriggerChain, Vault};
use memory::WorkingMemory;
use memory::large_result::shorten;
use opentelemetry::context::FutureExt;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use validate::Schema;

use crate::backoff::with_retries;
use crate::deadline::Deadline;
use crate::leases::{LeaseGuard, Leases};
use crate::options::RunnerOptions;
use crate::progress_writer::{self, ProgressWriter};
use crate::request_event::request_event;
use crate::response_writer::{Attempt, PendingResponse, ResponseWriter, inherited};
use crate::running::{self, Ran, RunLimits, Stopped};
use crate::secrets;
use crate::slots::Slot;
use crate::speculative_run::Prepared;
use crate::stages::Stages;
use crate::telemetry::{self, Invocation};
use crate::tool::Tool;
use crate::tool_access::{Refusal, ToolAccess};
use crate::voice::in_name_of;

/// How long a call computes before it is started: longer than most do, and too short for a call that is killed with its
/// runner again and again to go unnoticed for long.
const START_SOON: Duration = Duration::from_millis(5);

pub(crate) struct CallRunner {
    pub store: Arc<dyn Breadcrumbs>,
    pub tool_access: ToolAccess,
    pub leases: Arc<Leases>,
    pub responses: ResponseWriter,
    pub options: RunnerOptions,
    /// The runner is stopping: calls that have not started are released.
    pub stop: CancellationToken,
    /// The time for running calls is over.
    pub drained: CancellationToken,
}

/// An input that fits its tool, and what the call needs besides.
struct Checked {
    input: Value,
    secrets: Arc<Vault>,
    /// Time that the checks took of the call's `timeout_ms`.
    took: Duration,
}

/// How far the store knows of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartState {
    /// To be started.
    Claimed,
    /// It began its life running, with so many attempts in all.
    Begun { max_attempts: u32 },
}

/// A call that this runner has.
pub(crate) struct AcceptedCall {
    pub claim: Claim,
    pub held: LeaseGuard,
    /// `None` where it ran speculatively, and needs none any more.
    pub slot: Option<Slot>,
    pub progress: StartState,
    /// What was prepared before the request was written.
    pub speculative: Option<Result<Prepared, Refusal>>,
}

/// The response of a call that has computed before its request was written.
pub(crate) struct UncommittedResponse {
    pub response: NewBreadcrumb,
    tool: Arc<Tool>,
    took: Duration,
    invocation: Invocation,
}

impl UncommittedResponse {
    /// It was written, as its request was.
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
        // It may be large, and is wanted once.
        let input = take_input(&mut claim.request);
        let request = ToolRequest::from_breadcrumb(&claim.request).unwrap_or_else(|violations| {
            // The store takes no such request; a runner must not fall over it all the same.
            tracing::error!(%violations, "a request cannot be read");
            unreadable(&claim)
        });
        let deadline = Deadline::after(claim.time_left_ms, &request);
        let invocation = Invocation::begin(claim.request.owner_id, claim.attempt, &request, &stages);
        tracing::Span::current().record("trace", invocation.trace_id());
        let (number, record, queued_at) = (claim.attempt, &claim.request, claim.queued_at);
        let attempt = Attempt { number, record, request: &request, queued_at, stages, invocation };
        let mut answer = PendingResponse { attempt, claim: &claim, held: &held, deadline, unstarted: None };
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
            () = self.stop.cancelled() => return self.responses.give_back(&held).await,
            () = Deadline::passed(deadline.as_ref()) => Err(Refusal::failed(late(deadline, "before the tool ran"))),
            prepared = preparing.with_context(answer.attempt.invocation.stage("load")) => prepared,
        };
        answer.attempt.stages.loaded(began.elapsed());
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(Refusal::ServedByPeer) => {
                drop(slot);
                return self.responses.give_back(&held).await;
            }
            Err(Refusal::Failed { tool, failure }) => {
                drop(slot);
                return self.responses.fail(&answer, tool.as_deref(), failure).await;
            }
        };
        if let Some(slot) = &mut slot {
            slot.reclassify();
        }
        let max_attempts = prepared.tool.definition.limits.max_attempts;
        // If the tool was changed just now, the store needs its number of attempts.
        if progress == (StartState::Begun { max_attempts }) {
            return self.attempt(answer, prepared, slot).await;
        }
        // Most calls finish at once and need no start: nothing has happened that must not happen
        // twice.
        prepared.begin_speculatively(deadline.as_ref());
        tokio::select! {
            biased;
            () = held.lost.cancelled() => return,
            _ = timeout(START_SOON, prepared.compute()) => {}
        }
        if prepared.has_small_result() && self.options.takes_small_results(&request) {
            answer.unstarted = Some(max_attempts);
            return self.attempt(answer, prepared, slot).await;
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
        answer.attempt.stages.started(began.elapsed());
        match started {
            Ok(()) => self.attempt(answer, prepared, slot).await,
            Err(StoreError::LeaseLost { .. }) => tracing::info!("the lease was lost before the start"),
            Err(error) => {
                tracing::error!(%error, "the call cannot be started");
                drop(slot);
                self.responses.give_back(&held).await;
            }
        }
    }

    /// What was prepared before the request was written is for the tool as it was then.
    pub fn forget_if_changed(&self, taken: &mut AcceptedCall) {
        let AcceptedCall { claim, speculative, .. } = taken;
        let has_changed = |ready: &Prepared| !self.is_as_it_was(&ready.tool, &claim.profiles);
        if let Some(Ok(prepared)) = speculative.take_if(|speculative| speculative.as_ref().is_ok_and(has_changed)) {
            claim.request.context.insert("input".into(), prepared.into_input());
        }
    }

    /// Everything before the start. The failures end the request; the tool, where it is known, is for the metrics.
    async fn prepare(&self, claim: &Claim, request: &ToolRequest, input: Value) -> Result<Prepared, Refusal> {
        let tool = self.tool_access.find(&request.tool, &claim.profiles).await?;
        self.ready(tool, &claim.request, &claim.profiles, request, input).await
    }

    /// Prepares a call of this tool before its request is written, and begins it. `None` where that must wait.
    pub async fn prepare_speculatively(
        &self,
        uncommitted: &mut UncommittedCall,
        tool: Arc<Tool>,
    ) -> Option<Result<Prepared, Refusal>> {
        // A long check waits for its turn. The run does that, since it reacts to a deadline, a
        // cancel and a stop meanwhile.
        let is_quick = |input| tool.input.is_quick(input);
        if !tool.may_speculate() || !uncommitted.request.context.get("input").is_none_or(is_quick) {
            return None;
        }
        let input = take_input(&mut uncommitted.request);
        let Ok(request) = ToolRequest::from_breadcrumb(&uncommitted.request) else {
            uncommitted.request.context.insert("input".into(), input);
            return None;
        };
        let mut prepared = self.ready(tool, &uncommitted.request, &uncommitted.profiles, &request, input).await;
        if let Ok(prepared) = &mut prepared {
            prepared.begin_speculatively(Deadline::after(uncommitted.time_left_ms, &request).as_ref());
        }
        Some(prepared)
    }

    /// The response of a call that has computed before its request was written, if only the
    /// response is left to do. `took`: the preparation.
    pub fn uncommitted_response(
        &self,
        uncommitted: &UncommittedCall,
        prepared: &Prepared,
        took: Duration,
    ) -> Option<UncommittedResponse> {
        let (tool, request) = (&prepared.tool, prepared.request());
        let is_whole = prepared.has_small_result() && prepared.progress_writer.is_silent();
        if !is_whole || !self.options.takes_small_results(request) || !self.is_as_it_was(tool, &uncommitted.profiles) {
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

    fn is_as_it_was(&self, tool: &Arc<Tool>, profiles: &Profiles) -> bool {
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

    /// The input, which fits the tool, and the tool's secrets. Where it lacks one, a tool that it replaced may serve.
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
                    "the input does not fit the tool's input_schema",
                    &violations,
                ));
            }
            match secrets::granted_secrets(&*self.store, tool, request).await {
                Ok(secrets) => return Ok(Checked { input: checked, secrets, took }),
                Err(failure) if failure.code == ErrorCode::PermissionDenied => {
                    self.tool_access.readiness.look();
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
        // A tool reads what the agent that asked for it can read, and no more.
        let own = in_name_of(&self.store, record.created_by).map_err(|error| {
            ToolFailure::new(ErrorCode::ExecutionFailed, format!("the request's author is not known: {error}"))
        })?;
        let visibility = inherited(record);
        let seen = (visibility, record.sensitivity);
        let telling_store = if visibility == Visibility::Private { &own } else { &self.store };
        let (progress, progress_writer) =
            progress_writer::channel(telling_store.clone(), request, seen, chain.clone(), secrets.clone());
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

    async fn attempt(&self, mut answer: PendingResponse<'_>, prepared: Prepared, slot: Option<Slot>) {
        let deadline = answer.deadline;
        answer.attempt.invocation.runs(&prepared.tool);
        let allowed_ms = prepared.timeout_ms();
        let (tool, limits, progress_writer, run) = prepared.open_effect_gate(deadline.as_ref());
        let is_shortened = limits.timeout_ms < allowed_ms;
        let bounds = RunLimits {
            held: answer.held,
            deadline: deadline.as_ref(),
            drained: &self.drained,
            overtime: self.options.overtime,
            grace: self.options.grace,
        };
        let stage = answer.attempt.invocation.stage("run");
        let Ran { output, took: elapsed, stopped } =
            running::run(run, limits.timeout(), progress_writer, bounds).with_context(stage).await;
        // The rest needs no worker: the next call gets it while this call's response is written.
        drop(slot);
        answer.attempt.stages.ran(elapsed);
        let output = output.unwrap_or_else(|| {
            ToolOutput::new(
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the tool did not stop in time")),
                Map::new(),
            )
        });
        // The hold counts what is in memory. It ends with this function, when the response is
        // written.
        let ToolOutput { result, mut metadata, hold: _hold } = output;
        let result = match stopped {
            Some(Stopped::Lost) => {
                tracing::warn!("the lease was lost while the tool ran; nothing is written");
                return;
            }
            Some(Stopped::Cancelled) => Err(cancelled()),
            Some(Stopped::Deadline) => Err(late(deadline, "while the tool ran")),
            Some(Stopped::Drained) => result.map_err(|_| drained(answer.attempt.number)),
            Some(Stopped::Overtime) => {
                let message = format!("the tool ran longer than {} ms", tool.definition.limits.timeout_ms);
                Err(ToolFailure::new(ErrorCode::Timeout, message))
            }
            // The executor kept the time that was left, and does not know why it was so short.
            None if is_shortened && result.as_ref().is_err_and(|failure| failure.code == ErrorCode::Timeout) => {
                Err(late(deadline, "while the tool ran"))
            }
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
                let chain = TriggerChain::of_request(&answer.claim.request.tags);
                let settings = &self.options.large_results;
                let memory = WorkingMemory::new(self.store.clone(), chain, answer.claim.profiles.clone());
                tokio::select! {
                    () = answer.held.lost.cancelled() => return,
                    () = answer.held.cancel.cancelled() => Err(cancelled()),
                    () = Deadline::passed(deadline.as_ref()) => Err(late(deadline, "while the result was written")),
                    handed_over = shorten(output, settings, answer.attempt.request, &memory) => {
                        metadata.extend(handed_over.metadata);
                        Ok(handed_over.output)
                    }
                }
            }
            failed => failed,
        };
        self.responses.finish(&answer, &tool, result, elapsed, metadata).await;
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

/// A large value against a costly schema takes its time: beside the runtime, in the tenant's turn, and on the call's time.
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
    compute::pool().run_until(tool.owner_id, deadline, check).await.map_err(|failed| match failed {
        compute::ComputeError::DeadlineExceeded => {
            let allowed = definition.limits.timeout_ms;
            let message = format!("the call's {allowed} ms were over before its {} was checked", side.name());
            let reached = LimitReached { limit: LimitName::TimeoutMs, allowed };
            ToolFailure::new(ErrorCode::Timeout, message).with_details(json!(reached))
        }
        compute::ComputeError::QueueFull => {
            ToolFailure::new(ErrorCode::ExecutionFailed, "too many calls wait for their checks").retryable(true)
        }
        compute::ComputeError::Panicked => ToolFailure::new(ErrorCode::ExecutionFailed, "the schema cannot be checked"),
    })
}

async fn checked_output(tool: &Arc<Tool>, output: Value, deadline: Instant) -> Result<Value, ToolFailure> {
    let (output, violations) = check(tool, Side::Output, output, deadline).await?;
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

fn late(deadline: Option<Deadline>, when: &str) -> ToolFailure {
    deadline
        .map_or_else(|| ToolFailure::new(ErrorCode::Timeout, "the deadline passed"), |deadline| deadline.failure(when))
}

fn violated(code: ErrorCode, what: &str, violations: &[Violation]) -> ToolFailure {
    let first = violations.first().map(ToString::to_string).unwrap_or_default();
    ToolFailure::new(code, format!("{what}: {first}")).with_details(json!({"violations": violations}))
}
