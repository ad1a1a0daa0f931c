//! The tasks of the calls that this runner holds.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use rcrt_breadcrumb::{Breadcrumb, Claim, Lease, RequestKind, ToolRequest};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::coordination::leases::LeaseGuard;
use crate::coordination::queue_hints::QueueHints;
use crate::coordination::slots::{Origin, Slots};
use crate::execution::call::{AcceptedCall, CallRunner, StartState};
use crate::execution::stages::Stages;

/// How long a claimed call waits for a slot that another call took, before it is released.
pub(crate) const SLOT_WAIT: Duration = Duration::from_millis(100);

pub(crate) struct Calls {
    pub call_runner: Arc<CallRunner>,
    pub hints: Arc<QueueHints>,
    pub slots: Arc<Slots>,
    /// The maximum number of calls that have finished and whose responses are still being written.
    pub max_response_writes: usize,
    pub tasks: TaskTracker,
    /// One clone for each [`WaitingForSlot`].
    pub waiting: Arc<()>,
    /// Notified when a call has finished and its response is written.
    pub ended: Notify,
    /// Cancelled when the calls have no owner any more: they stop immediately, as in a crash.
    pub dropped: CancellationToken,
}

/// A call that was accepted without a slot, until it has one.
pub(crate) struct WaitingForSlot {
    _counted: Arc<()>,
}

impl Calls {
    /// How many calls have finished and are being written.
    pub fn response_writes(&self) -> usize {
        let unfinished = self.slots.taken() + self.slots.parked() + self.waiting();
        self.tasks.len().saturating_sub(unfinished)
    }

    /// Whether no more calls are to be claimed until responses are written.
    pub fn is_writing_too_many_responses(&self) -> bool {
        self.response_writes() >= self.max_response_writes
    }

    pub fn waiting(&self) -> usize {
        Arc::strong_count(&self.waiting) - 1
    }

    pub fn wait_if_fewer_than(&self, most: usize) -> Option<WaitingForSlot> {
        (self.waiting() < most).then(|| WaitingForSlot { _counted: self.waiting.clone() })
    }

    /// Takes a call that was claimed.
    pub fn claimed(self: &Arc<Self>, claim: Claim, asked: Instant) {
        let held = self.keep(claim.lease, asked);
        let tool = tool_of(&claim.request);
        let slot = self.slots.take(&tool, Origin::Queue);
        if slot.is_none() {
            // Now, so that no more calls of this tool are claimed while this one waits.
            self.slots.exclude(&tool);
        }
        let calls = self.clone();
        self.spawn(async move {
            let taken = AcceptedCall { claim, held, slot, progress: StartState::Claimed, speculative: None };
            calls.with_slot(taken, asked, Origin::Queue, None, || {}).await;
        });
    }

    pub fn keep(&self, lease: Lease, asked: Instant) -> LeaseGuard {
        self.hints.claimed(lease.request);
        self.call_runner.leases.keep(lease, asked)
    }

    /// Continues a call that has its slot, needs none, or gets one soon. `on_release` runs if it
    /// gets none.
    pub async fn with_slot(
        &self,
        mut taken: AcceptedCall,
        asked: Instant,
        origin: Origin,
        waiting: Option<WaitingForSlot>,
        on_release: impl FnOnce() + Send,
    ) {
        self.call_runner.discard_if_changed(&mut taken);
        if taken.slot.is_none() && !taken.has_ended() {
            let (tool, since) = (tool_of(&taken.claim.request), Instant::now());
            taken.slot = tokio::select! {
                slot = timeout(SLOT_WAIT, self.slots.wait(&tool, origin)) => slot.ok(),
                () = self.call_runner.stop.cancelled() => None,
            };
            if taken.slot.is_none() {
                self.slots.exclude(&tool);
                self.call_runner.responses.release_unstarted(&taken.held).await;
                on_release();
                // It is queued again, and no event reports that.
                self.hints.now();
                return;
            }
            if let Some(left) = &mut taken.claim.time_left_ms {
                *left = left.saturating_sub(since.elapsed().as_millis() as u64);
            }
        }
        drop(waiting);
        self.go(taken, asked).await;
    }

    async fn go(&self, mut taken: AcceptedCall, asked: Instant) {
        let claim = &taken.claim;
        let stages = Stages::claimed(claim.ready_at.unwrap_or(claim.queued_at), asked);
        let tool = tool_of(&claim.request);
        let span = tracing::info_span!("call", request = %claim.lease.request, tool, attempt = claim.attempt, trace = tracing::field::Empty);
        // So much of the lease may be used up that another runner has the call: let the store
        // decide.
        if asked.elapsed() > Duration::from_millis(self.call_runner.options.lease_ms() / 3) {
            taken.progress = StartState::Claimed;
        }
        let shadow = Box::pin(self.call_runner.run(taken, stages).instrument(span.clone())).await;
        if let Some(shadow) = shadow {
            // The call is answered: nothing that happens here changes its response.
            Box::pin(self.call_runner.run_shadow(shadow).instrument(span)).await;
        }
    }

    pub fn spawn(self: &Arc<Self>, call: impl Future<Output = ()> + Send + 'static) {
        // The future is large. Boxed, it is moved once and not with every layer around it.
        let (call, calls, counted) = (Box::pin(call), self.clone(), self.tasks.token());
        tokio::spawn(async move {
            let call = calls.dropped.run_until_cancelled(call);
            if AssertUnwindSafe(call).catch_unwind().await.is_err() {
                // Its lease expires, and the store responds.
                tracing::error!("a call's task panicked");
            }
            // Drop first: the notified task counts the tasks.
            drop(counted);
            calls.ended.notify_one();
        });
    }

    /// Waits for the calls to finish. After the drain time, cancels them and waits until they have
    /// stopped.
    pub async fn finish(&self, drain: Duration) {
        self.tasks.close();
        let (calls, drain_seconds) = (self.tasks.len(), drain.as_secs());
        tracing::info!(calls, drain_seconds, "stopping: waiting for running calls");
        tokio::select! {
            () = self.tasks.wait() => return,
            () = sleep(drain) => self.call_runner.drained.cancel(),
        }
        self.tasks.wait().await;
    }
}

pub(crate) fn tool_of(request: &Breadcrumb) -> String {
    let kind = RequestKind::of(request.schema_name.as_deref()).unwrap_or_default();
    ToolRequest::tool_of(kind, &request.context).to_owned()
}
