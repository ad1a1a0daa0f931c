//! One call: its tool, its input, its secrets, the run, the output, the response.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::context::FutureExt;
use rcrt_breadcrumb::{
    Breadcrumb, Breadcrumbs, Claim, ErrorCode, LimitName, LimitReached, RequestKind, StoreError, ToolFailure,
    ToolRequest,
};
use rcrt_executors::{ToolOutput, TriggerChain};
use rcrt_large_results::{WorkingMemory, shorten};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::with_retries;
use crate::coordination::leases::{LeaseGuard, Leases};
use crate::coordination::response_hints::ResponseHints;
use crate::coordination::slots::Slot;
use crate::execution::deadline::Deadline;
use crate::execution::response_writer::{Attempt, PendingResponse, ResponseWriter};
use crate::execution::running::{self, RunLimits, RunResult, Stopped};
use crate::execution::schema_check::checked_output;
use crate::execution::shadow::Shadow;
use crate::execution::speculative_run::{OpenedRun, PreparedRun};
use crate::execution::stages::Stages;
use crate::execution::telemetry::Invocation;
use crate::execution::tool_access::{Refusal, ToolAccess};
use crate::execution::tool_finder::ToolDirectory;
use crate::on_behalf_of::on_behalf_of;
use crate::options::RunnerOptions;
use crate::publishing::shadow_reports::ShadowReports;
use crate::registry::tool::Tool;

/// How long a claimed call can compute before it is started. Most calls finish within this time. It
/// is short, so that a call that kills its runner repeatedly is soon counted as an attempt.
const START_SOON: Duration = Duration::from_millis(5);

pub(crate) struct CallRunner {
    pub store: Arc<dyn Breadcrumbs>,
    pub tool_access: ToolAccess,
    pub directory: Arc<ToolDirectory>,
    pub leases: Arc<Leases>,
    pub responses: ResponseWriter,
    pub response_hints: Arc<ResponseHints>,
    pub shadows: Arc<ShadowReports>,
    pub options: RunnerOptions,
    /// The runner is stopping: calls that have not started are released.
    pub stop: CancellationToken,
    /// The drain time is over: running calls are stopped.
    pub drained: CancellationToken,
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
    pub speculative: Option<Result<PreparedRun, Refusal>>,
}

impl AcceptedCall {
    /// Whether it has computed, or failed, before its request was written.
    pub fn has_ended(&self) -> bool {
        self.speculative.as_ref().is_some_and(|speculative| speculative.as_ref().map_or(true, PreparedRun::has_ended))
    }
}

impl CallRunner {
    /// Runs and answers the call. Returns the shadow that is to run beside it.
    pub async fn run(&self, taken: AcceptedCall, stages: Stages) -> Option<Box<Shadow>> {
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
            () = held.lost.cancelled() => return None,
            () = held.cancel.cancelled() => Err(Refusal::failed(cancelled())),
            () = self.stop.cancelled() => {
                self.responses.release_unstarted(&held).await;
                return None;
            }
            () = Deadline::passed(deadline.as_ref()) => Err(Refusal::failed(late(deadline, "before the tool ran"))),
            prepared = preparing.with_context(pending.attempt.invocation.stage("load")) => prepared,
        };
        pending.attempt.stages.loaded(began.elapsed());
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(Refusal::ServedByPeer) => {
                drop(slot);
                self.responses.release_unstarted(&held).await;
                return None;
            }
            Err(Refusal::Failed { tool, failure }) => {
                drop(slot);
                self.responses.fail(&pending, tool.as_deref(), failure).await;
                return None;
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
            () = held.lost.cancelled() => return None,
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
                () = held.lost.cancelled() => return None,
                started = &mut start => break started,
                () = prepared.compute(), if prepared.is_computing() => {}
            }
        };
        pending.attempt.stages.started(began.elapsed());
        match started {
            Ok(()) => self.attempt(pending, prepared, slot).await,
            Err(StoreError::LeaseLost { .. }) => {
                tracing::info!("the lease was lost before the start");
                None
            }
            Err(error) => {
                tracing::error!(%error, "the call cannot be started");
                drop(slot);
                self.responses.release_unstarted(&held).await;
                None
            }
        }
    }

    async fn attempt(
        &self,
        mut pending: PendingResponse<'_>,
        prepared: PreparedRun,
        slot: Option<Slot>,
    ) -> Option<Box<Shadow>> {
        let shadow = self.choose_shadow(&prepared, &pending.claim.request, slot.as_ref());
        let deadline = pending.deadline;
        pending.attempt.invocation.runs(&prepared.tool);
        let allowed_ms = prepared.timeout_ms();
        let children = prepared.children.clone();
        children.hold(slot);
        let OpenedRun { tool, limits, run, progress_writer, log_writer } =
            prepared.open_effect_gate(deadline.as_ref(), pending.attempt.number);
        let is_shortened = limits.timeout_ms < allowed_ms;
        let bounds = RunLimits {
            held: pending.held,
            deadline: deadline.as_ref(),
            drained: &self.drained,
            overtime: self.options.overtime,
            grace: self.options.grace,
        };
        let stage = pending.attempt.invocation.stage("run");
        let RunResult { output, took: elapsed, stopped, debug } =
            running::run(run, limits.timeout(), (progress_writer, log_writer), bounds).with_context(stage).await;
        // The remaining steps need no worker: the next call can use it while this call's response
        // is written.
        children.release();
        if stopped != Some(Stopped::Lost) {
            children.cancel().await;
        }
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
        if let Some(debug) = debug {
            metadata.insert("debug".into(), debug.into());
        }
        let mut shadow = shadow.filter(|_| stopped.is_none());
        let result = match stopped {
            Some(Stopped::Lost) => {
                tracing::warn!("the lease was lost while the tool ran; nothing is written");
                return None;
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
        if let Some(shadow) = &mut shadow {
            shadow.answered(&result);
        }
        let result = match result {
            // The caller reads the fields of a creation's output: it must stay whole. It is
            // bounded.
            Ok(output) if pending.attempt.request.kind == RequestKind::Creation => Ok(output),
            Ok(output) => {
                let request = &pending.claim.request;
                let chain = TriggerChain::of_call(request.id, &request.tags);
                let settings = &self.options.large_results;
                // The parts belong to the agent that asked, as what its tools write.
                let agent = request.created_by;
                let store = on_behalf_of(&self.store, agent).unwrap_or_else(|_| self.store.clone());
                let memory = WorkingMemory::new(store, chain, pending.claim.profiles.clone(), agent);
                tokio::select! {
                    () = pending.held.lost.cancelled() => return None,
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
        shadow
    }
}

pub(crate) fn take_input(request: &mut Breadcrumb) -> Value {
    if RequestKind::of(request.schema_name.as_deref()) == Some(RequestKind::Creation) {
        return ToolRequest::input_of(request);
    }
    request.context.remove("input").unwrap_or_else(|| Value::Object(Map::new()))
}

fn unreadable(claim: &Claim) -> ToolRequest {
    ToolRequest {
        id: claim.request.id,
        request_id: claim.request.id.to_string(),
        tool: "(unreadable)".into(),
        input: Value::Null,
        workspace: claim.request.workspace().map(str::to_owned),
        agent_id: claim.request.created_by,
        ..ToolRequest::default()
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
