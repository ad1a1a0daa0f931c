//! The tasks of the calls that this runner has.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{Admission, Breadcrumb, Claim, Lease};
use futures::FutureExt;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use crate::call::{Caller, Progress, Taken};
use crate::hints::Hints;
use crate::leases::Held;
use crate::places::Places;
use crate::stages::Stages;
use crate::standing_by::Waiting;
use crate::unwritten::{Unwritten, Written};

/// How long a claimed call waits for a place that another took meanwhile, before it is given back.
pub(crate) const PLACE_SOON: Duration = Duration::from_millis(100);

/// How long the end waits for calls that were promised a place and are not written yet.
const LAST_PROMISE: Duration = Duration::from_secs(2);

pub(crate) struct Calls {
    pub caller: Arc<Caller>,
    pub hints: Arc<Hints>,
    pub places: Arc<Places>,
    /// The most calls that are not running any more and whose answers are still being written.
    pub max_answering: usize,
    pub tasks: TaskTracker,
    /// Calls that may still come because they were promised a place.
    pub promised: TaskTracker,
    /// Nobody waits any more for requests that are not written.
    pub unwritten: CancellationToken,
    /// Calls that were taken on without a place, and have none yet.
    pub waiting: Arc<()>,
    /// A call has come to its end, and its answer too.
    pub ended: Notify,
    /// Nobody owns the calls any more: they end where they are, as in a crash.
    pub dropped: CancellationToken,
}

impl Calls {
    /// Whether more answers are being written than may be.
    pub fn is_answering_too_many(&self) -> bool {
        self.tasks.len() >= self.places.taken() + self.waiting() + self.max_answering
    }

    pub fn waiting(&self) -> usize {
        Arc::strong_count(&self.waiting) - 1
    }

    /// Keeps the end waiting for a call that may come.
    pub fn expect(&self) -> TaskTrackerToken {
        self.promised.token()
    }

    /// A call that was claimed.
    pub fn claimed(self: &Arc<Self>, claim: Claim, asked: Instant) {
        self.take(claim, None, asked, || {});
    }

    /// A call that began its life claimed, and was promised a place. `given_back`: hears when it found none.
    pub fn promised(
        self: &Arc<Self>,
        claim: Claim,
        waiting: Waiting,
        offered: Instant,
        given_back: impl FnOnce() + Send + 'static,
    ) {
        self.take(claim, Some(waiting), offered, given_back);
    }

    fn take(
        self: &Arc<Self>,
        claim: Claim,
        waiting: Option<Waiting>,
        asked: Instant,
        given_back: impl FnOnce() + Send + 'static,
    ) {
        let held = self.keep(claim.lease, asked);
        let tool = tool_of(&claim.request);
        let place = self.places.take(&tool);
        if place.is_none() {
            // Now, so that no more of them are claimed while this one waits.
            self.places.bar(&tool);
        }
        let calls = self.clone();
        self.spawn(async move {
            let taken = Taken { claim, held, place, progress: Progress::Claimed, ahead: None };
            calls.with_place(taken, asked, waiting, given_back).await;
        });
    }

    /// A call whose request is about to be written. Whoever writes it says so, or nothing where that comes to nothing.
    pub fn begins(
        self: &Arc<Self>,
        unwritten: Unwritten,
        given_back: impl FnOnce() + Send + 'static,
    ) -> impl FnOnce(Admission) + Send + Sync + 'static {
        let (say, written) = oneshot::channel();
        let (request, asked, calls) = (unwritten.uncommitted.request.id, unwritten.asked, self.clone());
        self.spawn(async move {
            if let Some((taken, waiting)) = unwritten.until_written(&calls, written).await {
                calls.with_place(taken, asked, waiting, given_back).await;
            }
        });
        let calls = self.clone();
        move |admitted| {
            let Admission::Claimed(at) = admitted else {
                calls.hints.claimed(request);
                let _ = say.send(Written::Answered);
                return;
            };
            // At once, so that what comes right behind the request finds its call here.
            let held = calls.keep(Lease::claimed_at_write(request, at), asked);
            if let Err(Written::Taken(_, held)) = say.send(Written::Taken(at, held))
                && calls.caller.stop.is_cancelled()
            {
                let last = calls.clone();
                calls.spawn(async move { last.caller.answering.give_back(&held).await });
            }
        }
    }

    fn keep(&self, lease: Lease, asked: Instant) -> Held {
        self.hints.claimed(lease.request);
        self.caller.leases.keep(lease, asked)
    }

    /// Goes on with a call that has its place, needs none, or gets one soon. `given_back`: hears when it found none.
    async fn with_place(
        &self,
        mut taken: Taken,
        asked: Instant,
        waiting: Option<Waiting>,
        given_back: impl FnOnce() + Send,
    ) {
        self.caller.forget_if_changed(&mut taken);
        if taken.place.is_none() && !taken.has_ended() {
            let (tool, since) = (tool_of(&taken.claim.request), Instant::now());
            taken.place = tokio::select! {
                place = timeout(PLACE_SOON, self.places.wait(&tool)) => place.ok(),
                () = self.caller.stop.cancelled() => None,
            };
            if taken.place.is_none() {
                self.places.bar(&tool);
                self.caller.answering.give_back(&taken.held).await;
                given_back();
                // It is in the queue again, and nothing else tells of that.
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

    async fn go(&self, mut taken: Taken, asked: Instant) {
        let claim = &taken.claim;
        let stages = Stages::claimed(claim.ready_at.unwrap_or(claim.queued_at), asked);
        let tool = claim.request.context.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default();
        let span = tracing::info_span!("call", request = %claim.lease.request, tool, attempt = claim.attempt, trace = tracing::field::Empty);
        // So much of its lease may be gone that it is another's by now: the store says.
        if asked.elapsed() > Duration::from_millis(self.caller.options.lease_ms() / 3) {
            taken.progress = Progress::Claimed;
        }
        Box::pin(self.caller.run(taken, stages).instrument(span)).await;
    }

    fn spawn(self: &Arc<Self>, call: impl Future<Output = ()> + Send + 'static) {
        // It is large: moved once, and not with every layer around it.
        let (call, calls, counted) = (Box::pin(call), self.clone(), self.tasks.token());
        tokio::spawn(async move {
            let call = calls.dropped.run_until_cancelled(call);
            if AssertUnwindSafe(call).catch_unwind().await.is_err() {
                // Its lease ends by itself, and the store answers.
                tracing::error!("a call's task panicked");
            }
            // First: who is told counts.
            drop(counted);
            calls.ended.notify_one();
        });
    }

    /// Waits for the calls: up to the drain time to their end, after that until they have stopped.
    pub async fn finish(&self, drain: Duration) {
        self.promised.close();
        // What is not written by then is written running, and its lease ends.
        let _ = timeout(LAST_PROMISE, self.promised.wait()).await;
        self.unwritten.cancel();
        self.tasks.close();
        if !self.tasks.is_empty() {
            tracing::info!(calls = self.tasks.len(), "waiting for running calls");
        }
        tokio::select! {
            () = self.tasks.wait() => return,
            () = sleep(drain) => self.caller.drained.cancel(),
        }
        self.tasks.wait().await;
    }
}

fn tool_of(request: &Breadcrumb) -> String {
    request.context.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default().to_owned()
}
