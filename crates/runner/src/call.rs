//! One call's way: its tool, its input, its secrets, the run, the output, the answer.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{
    Birth, Breadcrumb, Breadcrumbs, Claim, ErrorCode, Limits, Profiles, StoreError, ToolFailure, ToolRequest,
    Violation, Visibility,
};
use executors::{Chain, GivesGoAhead, GoAhead, ToolCall, ToolOutput};
use memory::WorkingMemory;
use memory::large_result::shorten;
use opentelemetry::context::FutureExt;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use validate::Schema;

use crate::answering::{Answer, Answering, inherited};
use crate::backoff::persist;
use crate::deadline::Deadline;
use crate::finding::{Finding, Refusal};
use crate::leases::{Held, Leases};
use crate::options::RunnerOptions;
use crate::places::Place;
use crate::progress::{self, Telling};
use crate::running::{self, Bounds, Ran, Run, Stopped};
use crate::secrets;
use crate::stages::Stages;
use crate::telemetry::Invocation;
use crate::tool::Tool;
use crate::voice::in_name_of;

/// How long a call computes before it is started: longer than most do, and too short for a call that is killed with its
/// runner again and again to go unnoticed for long.
const START_SOON: Duration = Duration::from_millis(5);

pub(crate) struct Caller {
    pub store: Arc<dyn Breadcrumbs>,
    pub finding: Finding,
    pub leases: Arc<Leases>,
    pub answering: Answering,
    pub options: RunnerOptions,
    /// The runner was told to stop: what is not started goes back.
    pub stop: CancellationToken,
    /// The time for running calls is over.
    pub drained: CancellationToken,
}

/// How far the store knows of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// To be started.
    Claimed,
    /// It began its life running, with so many attempts in all.
    Begun { max_attempts: u32 },
}

/// A call that may be run.
pub(crate) struct Ready {
    pub tool: Arc<Tool>,
    pub call: ToolCall,
    pub telling: Telling,
}

/// A call that began to run before its request was written.
pub(crate) struct Ahead {
    pub tool: Arc<Tool>,
    pub limits: Limits,
    pub telling: Telling,
    pub run: Run,
    pub go_ahead: GivesGoAhead,
}

/// A call on its way to its attempt.
pub(crate) enum Next {
    Ready(Ready),
    Ahead(Ahead),
}

/// A call that this runner has.
pub(crate) struct Taken {
    pub claim: Claim,
    pub held: Held,
    /// `None` where it ran ahead, and needs none any more.
    pub place: Option<Place>,
    pub stages: Stages,
    pub progress: Progress,
    /// What was prepared before the request was written.
    pub ahead: Option<Result<Next, Refusal>>,
}

impl Caller {
    pub async fn run(&self, taken: Taken) {
        let Taken { mut claim, held, mut place, stages, progress, ahead } = taken;
        // It may be large, and is wanted once.
        let input = take_input(&mut claim.request);
        let request = ToolRequest::from_breadcrumb(&claim.request).unwrap_or_else(|violations| {
            // The store takes no such request; a runner must not fall over it all the same.
            tracing::error!(%violations, "a request cannot be read");
            unreadable(&claim)
        });
        let deadline = Deadline::after(claim.time_left_ms, &request);
        let invocation = Invocation::begin(&claim, &request, &stages);
        tracing::Span::current().record("trace", invocation.trace_id());
        let mut answer = Answer { claim: &claim, held: &held, request: &request, deadline, stages, invocation };
        let began = Instant::now();
        let prepared = async {
            match ahead {
                Some(prepared) => prepared,
                None => self.prepare(&claim, &request, input).await.map(Next::Ready),
            }
        };
        let next = tokio::select! {
            biased;
            () = held.lost.cancelled() => return,
            () = held.cancel.cancelled() => Err(Refusal::failed(cancelled())),
            () = self.stop.cancelled() => return self.answering.give_back(&held).await,
            () = Deadline::passed(deadline.as_ref()) => Err(Refusal::failed(late(deadline, "before the tool ran"))),
            next = prepared.with_context(answer.invocation.stage("load")) => next,
        };
        answer.stages.loaded(began.elapsed());
        let next = match next {
            Ok(next) => next,
            Err(Refusal::Elsewhere) => {
                drop(place);
                return self.answering.give_back(&held).await;
            }
            Err(Refusal::Failed { tool, failure }) => {
                drop(place);
                return self.answering.fail(&answer, tool.as_deref(), failure).await;
            }
        };
        if let Some(place) = &mut place {
            place.settle();
        }
        let max_attempts = next.limits().max_attempts;
        // Where the tool was changed in this moment, the store hears of its attempts.
        if progress == (Progress::Begun { max_attempts }) {
            return self.attempt(answer, next, place).await;
        }
        let (next, has_computed) = tokio::select! {
            biased;
            () = held.lost.cancelled() => return,
            computed = compute(next, deadline.as_ref()) => computed,
        };
        if has_computed && request.max_result_chars.is_none() {
            return self.attempt(answer, next, place).await;
        }
        let began = Instant::now();
        let started = tokio::select! {
            biased;
            () = held.lost.cancelled() => return,
            started = persist("start a call", || self.store.start(held.lease, max_attempts)) => started,
        };
        answer.stages.started(began.elapsed());
        match started {
            Ok(()) => self.attempt(answer, next, place).await,
            Err(StoreError::LeaseLost { .. }) => tracing::info!("the lease was lost before the start"),
            Err(error) => {
                tracing::error!(%error, "the call cannot be started");
                drop(place);
                self.answering.give_back(&held).await;
            }
        }
    }

    /// Everything before the start. The failures end the request; the tool, where it is known, is for the metrics.
    async fn prepare(&self, claim: &Claim, request: &ToolRequest, input: Value) -> Result<Ready, Refusal> {
        let tool = self.finding.find(&request.tool, &claim.profiles).await?;
        self.ready(tool, &claim.request, &claim.profiles, request, input).await
    }

    /// Prepares a call of this tool before its request is written, and begins it. `None` where that must wait.
    pub async fn run_ahead(&self, birth: &mut Birth, tool: Arc<Tool>) -> Option<Result<Next, Refusal>> {
        let input = take_input(&mut birth.request);
        let Ok(request) = ToolRequest::from_breadcrumb(&birth.request) else {
            birth.request.context.insert("input".into(), input);
            return None;
        };
        let deadline = Deadline::after(birth.time_left_ms, &request);
        let ready = match self.ready(tool, &birth.request, &birth.profiles, &request, input).await {
            Ok(ready) => ready,
            Err(refusal) => return Some(Err(refusal)),
        };
        let Ready { tool, mut call, telling } = ready;
        bound_by(deadline.as_ref(), &mut call);
        let (gives, waits) = GoAhead::later();
        call.go_ahead = waits;
        let limits = call.limits;
        let run = Run::begin(tool.clone(), call);
        Some(Ok(Next::Ahead(Ahead { tool, limits, telling, run, go_ahead: gives })))
    }

    async fn ready(
        &self,
        tool: Arc<Tool>,
        record: &Breadcrumb,
        profiles: &Profiles,
        request: &ToolRequest,
        input: Value,
    ) -> Result<Ready, Refusal> {
        let ready = async {
            let (input, violations) = check(&tool, Side::Input, input).await?;
            if !violations.is_empty() {
                return Err(violated(
                    ErrorCode::InvalidArguments,
                    "the input does not fit the tool's input_schema",
                    &violations,
                ));
            }
            let secrets = secrets::vault(&*self.store, &tool, request).await.inspect_err(|failure| {
                if failure.code == ErrorCode::PermissionDenied {
                    self.finding.readiness.look();
                }
            })?;
            let chain = Chain::of_request(&record.tags);
            // A tool reads what who asked for it may read, and no more.
            let own = in_name_of(&self.store, record.created_by).map_err(|error| {
                ToolFailure::new(ErrorCode::ExecutionFailed, format!("the request's author is not known: {error}"))
            })?;
            let visibility = inherited(record);
            let seen = (visibility, record.sensitivity);
            let telling_store = if visibility == Visibility::Private { &own } else { &self.store };
            let (progress, telling) =
                progress::channel(telling_store.clone(), request, seen, chain.clone(), secrets.clone());
            let call = ToolCall {
                owner_id: record.owner_id,
                tool_id: tool.id,
                tool_version: tool.version,
                definition: tool.definition.clone(),
                limits: tool.definition.limits,
                request: request.clone(),
                input,
                secrets,
                breadcrumbs: own,
                chain,
                profiles: profiles.clone(),
                progress,
                deadline: None,
                go_ahead: GoAhead::given(),
            };
            Ok((call, telling))
        };
        match ready.await {
            Ok((call, telling)) => Ok(Ready { tool, call, telling }),
            Err(failure) => Err(Refusal::Failed { tool: Some(tool.candidate.clone()), failure }),
        }
    }

    async fn attempt(&self, mut answer: Answer<'_>, next: Next, place: Option<Place>) {
        let deadline = answer.deadline;
        let Ahead { tool, limits, telling, run, go_ahead } = next.begun(deadline.as_ref());
        answer.invocation.runs(&tool);
        let is_shortened = limits.timeout_ms < tool.definition.limits.timeout_ms;
        let bounds = Bounds {
            held: answer.held,
            deadline: deadline.as_ref(),
            drained: &self.drained,
            overtime: self.options.overtime,
            grace: self.options.grace,
        };
        // From here on the call may do what its tool may do.
        go_ahead.give();
        let stage = answer.invocation.stage("run");
        let Ran { output, took: elapsed, stopped } =
            running::run(run, limits.timeout(), telling, bounds).with_context(stage).await;
        // What is left needs no worker: the next call has it, while this one's answer is written.
        drop(place);
        answer.stages.ran(elapsed);
        let output = output.unwrap_or_else(|| {
            ToolOutput::new(
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the tool did not stop in time")),
                Map::new(),
            )
        });
        // The hold counts what is in memory, and ends with this function, when the answer is written.
        let ToolOutput { result, mut metadata, hold: _hold } = output;
        let result = match stopped {
            Some(Stopped::Lost) => {
                tracing::warn!("the lease was lost while the tool ran; nothing is written");
                return;
            }
            Some(Stopped::Cancelled) => Err(cancelled()),
            Some(Stopped::Deadline) => Err(late(deadline, "while the tool ran")),
            Some(Stopped::Drained) => result.map_err(|_| drained(answer.claim.attempt)),
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
            Ok(output) => checked_output(&tool, output).await,
            failed => failed,
        };
        let result = match result {
            Ok(output) => {
                let chain = Chain::of_request(&answer.claim.request.tags);
                let settings = &self.options.large_results;
                let memory = WorkingMemory::new(self.store.clone(), chain, answer.claim.profiles.clone());
                tokio::select! {
                    () = answer.held.lost.cancelled() => return,
                    () = answer.held.cancel.cancelled() => Err(cancelled()),
                    () = Deadline::passed(deadline.as_ref()) => Err(late(deadline, "while the result was written")),
                    handed_over = shorten(output, settings, answer.request, &memory) => {
                        metadata.extend(handed_over.metadata);
                        Ok(handed_over.output)
                    }
                }
            }
            failed => failed,
        };
        self.answering.finish(&answer, &tool, result, elapsed, metadata).await;
    }
}

/// Lets a call that was not started compute for a moment, where its tool waits with everything else: most have an answer
/// by then, and need no start, because nothing has happened that must not happen twice. Tells whether this one has.
async fn compute(next: Next, deadline: Option<&Deadline>) -> (Next, bool) {
    if let Next::Ready(ready) = &next
        && !ready.tool.may_run_ahead()
    {
        return (next, false);
    }
    let mut ahead = next.begun(deadline);
    tokio::select! {
        biased;
        () = ahead.run.go_on() => {}
        () = ahead.go_ahead.wanted() => {}
        () = sleep(START_SOON) => {}
    }
    let has_computed = ahead.run.has_computed();
    (Next::Ahead(ahead), has_computed)
}

impl Next {
    fn limits(&self) -> Limits {
        match self {
            Self::Ready(ready) => ready.call.limits,
            Self::Ahead(ahead) => ahead.limits,
        }
    }

    /// Begins what has not begun.
    fn begun(self, deadline: Option<&Deadline>) -> Ahead {
        match self {
            Self::Ahead(ahead) => ahead,
            Self::Ready(Ready { tool, mut call, telling }) => {
                bound_by(deadline, &mut call);
                let (gives, waits) = GoAhead::later();
                call.go_ahead = waits;
                Ahead { limits: call.limits, run: Run::begin(tool.clone(), call), tool, telling, go_ahead: gives }
            }
        }
    }
}

fn bound_by(deadline: Option<&Deadline>, call: &mut ToolCall) {
    if let Some(deadline) = deadline {
        deadline.shorten(&mut call.limits);
        call.deadline = Some(deadline.at);
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
}

/// A large value against a costly schema takes its time: not on a thread that others wait for.
async fn check(tool: &Arc<Tool>, side: Side, value: Value) -> Result<(Value, Vec<Violation>), ToolFailure> {
    let schema = side.schema(tool);
    if schema.is_quick(&value) {
        let violations = schema.check(&value);
        return Ok((value, violations));
    }
    let tool = tool.clone();
    let check = move || {
        let violations = side.schema(&tool).check(&value);
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
