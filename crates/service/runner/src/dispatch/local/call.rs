//! An admitted call, from its admission until its request is written. The states are described in
//! the [parent module](super).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use futures::future::BoxFuture;
use rcrt_breadcrumb::{AnsweredTerms, Breadcrumb, Breadcrumbs, Claim, ClaimTerms, Created, NewBreadcrumb, StoreError};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;
use uuid::Uuid;

use super::admission::{Admitted, LocalAdmission};
use crate::coordination::backlog::Backlog;
use crate::coordination::leases::LeaseGuard;
use crate::coordination::slots::{Origin, Slot};
use crate::dispatch::calls::{SLOT_WAIT, WaitingForSlot};
use crate::execution::call::{AcceptedCall, StartState};
use crate::execution::preparation::{ComputedCall, UncommittedCall, UncommittedResponse};
use crate::execution::speculative_run::{PreparedRun, has_small_input};
use crate::execution::tool_access::Refusal;
use crate::registry::tool::Tool;
use crate::registry::tool_rights::ToolRights;

/// How long a request waits for its tool's result, if a run takes longer than recent ones: as long
/// as it waited for its slot, within these bounds.
const HOLD_BACK: (Duration, Duration) = (Duration::from_millis(30), Duration::from_millis(200));
/// How long such a request waits for a slot before that, if slots become free more slowly than
/// expected.
const MAX_HELD_BACK_WAIT: Duration = Duration::from_secs(3);
/// The pause between searches for a request that may have been written.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A request that an agent creates. The record was checked.
pub(super) struct NewRequest {
    /// The agent's store.
    pub store: Arc<dyn Breadcrumbs>,
    pub owner_id: Uuid,
    pub creator: Uuid,
    pub record: NewBreadcrumb,
    pub key: Option<String>,
    pub rights: ToolRights,
}

struct LocalCall {
    id: Uuid,
    request: NewRequest,
    deadline_ms: Option<u64>,
    /// The agent that waits for the write.
    reply: Option<oneshot::Sender<Result<Created, StoreError>>>,
    admission: Arc<LocalAdmission>,
    tool: Arc<Tool>,
    slot: Option<Slot>,
    waiting: Option<WaitingForSlot>,
    is_held_back: bool,
    asked: Instant,
    /// Whether it has not had a slot yet.
    is_to_begin: bool,
    /// For a tool that may compute before the request is written.
    uncommitted: Option<UncommittedCall>,
    prepared: Option<Result<PreparedRun, Refusal>>,
    /// How long the preparation took.
    prepared_in: Duration,
    /// Set if the call is written as running.
    max_attempts: Option<u32>,
}

enum State {
    HeldBack,
    Answering(BoxFuture<'static, LocalCallOutcome>, Box<ComputedCall>),
    Claiming(BoxFuture<'static, LocalCallOutcome>),
    Searching(BoxFuture<'static, LocalCallOutcome>),
}

enum LocalCallOutcome {
    Answered(Result<Created, StoreError>),
    Claimed(Result<(Created, Option<Claim>), StoreError>),
    Found(Option<Breadcrumb>),
}

impl State {
    async fn outcome(&mut self) -> LocalCallOutcome {
        match self {
            Self::HeldBack => std::future::pending().await,
            Self::Answering(work, _) | Self::Claiming(work) | Self::Searching(work) => work.await,
        }
    }
}

impl Admitted {
    /// Hands the call to a task of the runner, and waits until the request is written.
    pub async fn dispatch(self, request: NewRequest) -> Result<Created, StoreError> {
        let (reply, written) = oneshot::channel();
        let calls = self.admission.calls.clone();
        let (call, token) = LocalCall::new(self, request, reply);
        calls.spawn(call.run());
        drop(token);
        written.await.unwrap_or_else(|_| {
            let stopped = "the runner of this process stopped while the request was written; try again";
            Err(StoreError::Unavailable(stopped.into()))
        })
    }
}

impl LocalCall {
    fn new(
        admitted: Admitted,
        request: NewRequest,
        reply: oneshot::Sender<Result<Created, StoreError>>,
    ) -> (Self, TaskTrackerToken) {
        let Admitted { admission, tool, slot, waiting, is_held_back, asked, token } = admitted;
        let id = Uuid::now_v7();
        let deadline_ms = request.record.context.get("deadline_ms").and_then(Value::as_u64);
        let call = Self {
            id,
            deadline_ms,
            reply: Some(reply),
            admission,
            slot,
            waiting,
            is_held_back,
            asked,
            is_to_begin: true,
            // A large input is not copied: its call would wait for the write.
            uncommitted: (tool.may_speculate() && has_small_input(&request.record))
                .then(|| request.uncommitted(id, deadline_ms)),
            prepared: None,
            prepared_in: Duration::ZERO,
            max_attempts: None,
            tool,
            request,
        };
        (call, token)
    }

    async fn run(mut self) {
        let calls = self.admission.calls.clone();
        // Before the write: the request's event must not count as a hint.
        calls.hints.claimed(self.id);
        let Some((claim, held)) = Box::pin(self.until_claimed()).await else { return };
        let Self { admission, tool, slot, waiting, asked, prepared, max_attempts, .. } = self;
        let progress = max_attempts.map_or(StartState::Claimed, |max_attempts| StartState::Started { max_attempts });
        let accepted = AcceptedCall { claim, held, slot, progress, speculative: prepared };
        if accepted.slot.is_none() && !accepted.has_ended() {
            calls.slots.exclude(tool.name());
        }
        calls
            .with_slot(accepted, asked, Origin::LocalDispatch, waiting, move || admission.set_backlog(Backlog::Any))
            .await;
    }

    /// `None` if nothing is left to do: the call was answered, or its request was not written.
    async fn until_claimed(&mut self) -> Option<(Claim, LeaseGuard)> {
        let calls = self.admission.calls.clone();
        let (stop, drained) = (&calls.call_runner.stop, &calls.call_runner.drained);
        // The time of a deadline counts from the write.
        let waits_long = self.is_held_back && self.deadline_ms.is_none();
        let slot_wait = if waits_long { MAX_HELD_BACK_WAIT } else { SLOT_WAIT };
        let (hold_back, given_up) = (sleep_until(self.asked + slot_wait), sleep_until(self.asked + slot_wait));
        tokio::pin!(hold_back, given_up);
        let mut state = if self.is_held_back { State::HeldBack } else { self.claim() };
        loop {
            if self.is_to_begin && self.slot.is_some() {
                if self.is_held_back {
                    let longest = self.asked.elapsed().clamp(HOLD_BACK.0, HOLD_BACK.1);
                    hold_back.as_mut().reset(Instant::now() + longest);
                    given_up.as_mut().reset(Instant::now() + SLOT_WAIT.max(longest));
                }
                self.begin().await;
            }
            if matches!(state, State::HeldBack) && !self.is_to_begin && !self.is_computing() {
                state = self.answer_or_claim();
            }
            tokio::select! {
                biased;
                outcome = state.outcome() => match outcome {
                    LocalCallOutcome::Answered(Ok(created)) => {
                        match state {
                            State::Answering(_, computed) if !created.replayed => computed.was_written(),
                            _ => self.discard(),
                        }
                        return self.end(Ok(created));
                    }
                    LocalCallOutcome::Answered(Err(error)) if may_concern_response(&error) => state = self.claim(),
                    LocalCallOutcome::Claimed(Ok((created, Some(mut claim)))) => {
                        claim.allowed_tools.clone_from(&self.request.rights.allowed);
                        // Before the reply, so that a cancellation finds its call here.
                        let held = calls.keep(claim.lease, self.asked);
                        self.reply(Ok(created));
                        return Some((claim, held));
                    }
                    LocalCallOutcome::Claimed(Err(error @ StoreError::Unavailable(_))) => {
                        self.reply(Err(error));
                        self.give_up_slot();
                        state = self.search();
                    }
                    LocalCallOutcome::Found(Some(request)) => {
                        let time_left = self.deadline_ms.map(|ms| ms.saturating_sub(elapsed_ms(self.asked)));
                        let ToolRights { profiles, allowed, .. } = self.request.rights.clone();
                        let mut claim = Claim::at_write(request, profiles, time_left);
                        claim.allowed_tools = allowed;
                        let held = calls.keep(claim.lease, self.asked);
                        return Some((claim, held));
                    }
                    LocalCallOutcome::Claimed(Ok((created, None))) => {
                        self.discard();
                        return self.end(Ok(created));
                    }
                    LocalCallOutcome::Answered(Err(error)) | LocalCallOutcome::Claimed(Err(error)) => {
                        self.discard();
                        return self.end(Err(error));
                    }
                    LocalCallOutcome::Found(None) => {
                        self.discard();
                        return None;
                    }
                },
                () = drained.cancelled() => {
                    self.discard();
                    return None;
                }
                // Other calls need the slot while this one waits for the disk.
                () = until_given_up(stop, given_up.as_mut()), if self.is_to_begin || self.slot.is_some() => {
                    self.give_up_slot();
                }
                () = &mut hold_back, if matches!(state, State::HeldBack) => state = self.claim(),
                slot = calls.slots.wait(self.tool.name(), Origin::LocalDispatch), if self.is_to_begin => self.slot = Some(slot),
                () = compute(&mut self.prepared) => if self.has_ended() {
                    self.slot = None;
                },
            }
        }
    }

    async fn begin(&mut self) {
        (self.is_to_begin, self.waiting) = (false, None);
        let Some(uncommitted) = &mut self.uncommitted else { return };
        let (began, runner) = (Instant::now(), &self.admission.calls.call_runner);
        self.prepared = runner.prepare_speculatively(uncommitted, self.tool.clone()).await;
        self.prepared_in = began.elapsed();
        if matches!(self.prepared, Some(Err(_))) {
            self.slot = None;
        }
    }

    fn is_computing(&self) -> bool {
        matches!(&self.prepared, Some(Ok(prepared)) if prepared.is_computing())
    }

    fn has_ended(&self) -> bool {
        matches!(&self.prepared, Some(Ok(prepared)) if prepared.has_ended())
    }

    fn answer_or_claim(&mut self) -> State {
        let runner = &self.admission.calls.call_runner;
        let response = match (&self.prepared, &self.uncommitted) {
            (Some(Ok(ready)), Some(uncommitted)) => runner.uncommitted_response(uncommitted, ready, self.prepared_in),
            _ => None,
        };
        let Some(UncommittedResponse { record: response, computed }) = response else { return self.claim() };
        let terms = AnsweredTerms {
            id: self.id,
            response,
            responder: self.admission.responder,
            max_attempts: self.tool.definition.limits.max_attempts,
        };
        // The record may be needed again, if the response is refused.
        let NewRequest { store, record, key, .. } = &self.request;
        let (store, record, key) = (store.clone(), record.clone(), key.clone());
        let write =
            async move { LocalCallOutcome::Answered(store.create_answered(record, key.as_deref(), terms).await) };
        State::Answering(Box::pin(write), Box::new(computed))
    }

    fn claim(&mut self) -> State {
        let options = &self.admission.calls.call_runner.options;
        let runs = self.slot.is_some() || self.prepared.is_some();
        self.max_attempts = runs.then_some(self.tool.definition.limits.max_attempts);
        let (id, max_attempts) = (self.id, self.max_attempts);
        let terms = ClaimTerms { id, runner_id: options.runner_id, lease_ms: options.lease_ms(), max_attempts };
        let NewRequest { store, record, key, .. } = &mut self.request;
        let (store, record, key) = (store.clone(), std::mem::take(record), key.take());
        let write = async move { LocalCallOutcome::Claimed(store.create_claimed(record, key.as_deref(), terms).await) };
        State::Claiming(Box::pin(write))
    }

    /// The connection was lost, so the request may have been written.
    fn search(&self) -> State {
        let runner = &self.admission.calls.call_runner;
        let (id, store, stop) = (self.id, runner.store.clone(), runner.stop.clone());
        let until = self.asked + Duration::from_millis(runner.options.lease_ms());
        State::Searching(Box::pin(async move {
            while Instant::now() < until && stop.run_until_cancelled(sleep(POLL_INTERVAL)).await.is_some() {
                if let Ok(request) = store.get(id).await {
                    return LocalCallOutcome::Found(Some(request));
                }
            }
            LocalCallOutcome::Found(None)
        }))
    }

    fn give_up_slot(&mut self) {
        (self.is_to_begin, self.slot) = (false, None);
        if let Some(Ok(prepared)) = &mut self.prepared
            && !prepared.has_ended()
        {
            prepared.forget_run();
        }
    }

    /// The request was not written by this call. A run that has not ended stops when it is dropped.
    fn discard(&self) {
        if self.has_ended() {
            self.tool.invalidate_kept_isolate();
        }
    }

    fn reply(&mut self, result: Result<Created, StoreError>) {
        // A caller that is gone does not need it.
        let _ = self.reply.take().map(|reply| reply.send(result));
    }

    fn end<T>(&mut self, result: Result<Created, StoreError>) -> Option<T> {
        self.reply(result);
        None
    }
}

impl NewRequest {
    /// The call as it will be written, but for the time and the checksum, which no run reads.
    fn uncommitted(&self, id: Uuid, time_left_ms: Option<u64>) -> UncommittedCall {
        let (creator, unmeasured) = (Some(self.creator), (String::new(), 0));
        let mut request = self.record.clone().into_first_version(id, self.owner_id, creator, unmeasured, Utc::now());
        for tag in self.rights.profiles.tags() {
            if !request.tags.contains(&tag) {
                request.tags.push(tag);
            }
        }
        UncommittedCall { request, rights: self.rights.clone(), time_left_ms }
    }
}

/// Whether the request may be written without the response. If the error concerns the request, the
/// second write returns it again.
fn may_concern_response(error: &StoreError) -> bool {
    !error.is_retryable() && !matches!(error, StoreError::IdempotencyMismatch | StoreError::QuotaExceeded { .. })
}

fn elapsed_ms(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

async fn until_given_up(stop: &CancellationToken, given_up: Pin<&mut Sleep>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = given_up => {}
    }
}

/// Never returns if nothing computes.
async fn compute(prepared: &mut Option<Result<PreparedRun, Refusal>>) {
    match prepared {
        Some(Ok(prepared)) if prepared.is_computing() => prepared.compute().await,
        _ => std::future::pending().await,
    }
}
