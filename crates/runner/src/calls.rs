//! The tasks of the calls that this runner has.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{Birth, Claim, Lease};
use chrono::{DateTime, Utc};
use futures::FutureExt;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use crate::call::{Caller, Next, Progress, Taken};
use crate::finding::Refusal;
use crate::hints::Hints;
use crate::leases::Held;
use crate::places::{Place, Places};
use crate::running::Run;
use crate::stages::Stages;
use crate::standing_by::Waiting;
use crate::tool::Tool;

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
    /// A call has come to its end, and its answer too.
    pub ended: Notify,
    /// Nobody owns the calls any more: they end where they are, as in a crash.
    pub dropped: CancellationToken,
}

impl Calls {
    /// Whether more answers are being written than may be.
    pub fn is_answering_too_many(&self) -> bool {
        self.tasks.len() >= self.places.taken() + self.max_answering
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

    /// A call that begins its life running, because it has its place: where its tool lets it, it computes while its request
    /// is written. It hears of that, or nothing where that comes to nothing.
    pub fn ahead(
        self: &Arc<Self>,
        mut birth: Birth,
        tool: Arc<Tool>,
        place: Place,
        asked: Instant,
    ) -> impl FnOnce(DateTime<Utc>) + Send + Sync + 'static {
        let (say, mut written) = oneshot::channel::<(DateTime<Utc>, Held)>();
        let (request, calls) = (birth.request.id, self.clone());
        self.spawn(async move {
            let max_attempts = tool.definition.limits.max_attempts;
            let mut place = Some(place);
            let mut ahead = match tool.may_run_ahead() {
                true => calls.caller.run_ahead(&mut birth, tool).await,
                false => None,
            };
            let (at, held) = loop {
                let run = match &mut ahead {
                    Some(Ok(Next::Ahead(ahead))) if !ahead.run.has_ended() => Some(&mut ahead.run),
                    _ => None,
                };
                tokio::select! {
                    biased;
                    said = &mut written => match said {
                        Ok(said) => break said,
                        Err(_) => return calls.never_was(ahead).await,
                    },
                    () = calls.caller.drained.cancelled() => return calls.never_was(ahead).await,
                    // What has ended needs no worker, however long the disk takes.
                    () = go_on(run) => place = None,
                }
            };
            calls.go(birth.claim(at), held, place, asked, Progress::Begun { max_attempts }, ahead).await;
        });
        let calls = self.clone();
        move |at| {
            // At once, so that what comes right behind the request finds its call here.
            calls.hints.claimed(request);
            let held = calls.caller.leases.keep(Lease::from_birth(request, at), asked);
            // Where it does not listen any more, the lease ends by itself.
            let _ = say.send((at, held));
        }
    }

    /// Stops a run whose request was not written.
    async fn never_was(&self, ahead: Option<Result<Next, Refusal>>) {
        if let Some(Ok(Next::Ahead(mut ahead))) = ahead {
            drop(ahead.go_ahead);
            ahead.run.stop(self.caller.options.grace).await;
        }
    }

    fn take(
        self: &Arc<Self>,
        mut claim: Claim,
        waiting: Option<Waiting>,
        asked: Instant,
        given_back: impl FnOnce() + Send + 'static,
    ) {
        self.hints.claimed(claim.lease.request);
        let held = self.caller.leases.keep(claim.lease, asked);
        let tool = claim.request.context.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default().to_owned();
        let place = self.places.take(&tool);
        if place.is_none() {
            // Now, so that no more of them are claimed while this one waits.
            self.places.bar(&tool);
        }
        let taken = Instant::now();
        let calls = self.clone();
        self.spawn(async move {
            let place = match place {
                Some(place) => Some(place),
                None => tokio::select! {
                    place = timeout(PLACE_SOON, calls.places.wait(&tool)) => place.ok(),
                    () = calls.caller.stop.cancelled() => None,
                },
            };
            drop(waiting);
            match place {
                Some(place) => {
                    if let Some(left) = &mut claim.time_left_ms {
                        *left = left.saturating_sub(taken.elapsed().as_millis() as u64);
                    }
                    calls.go(claim, held, Some(place), asked, Progress::Claimed, None).await;
                }
                None => {
                    calls.places.bar(&tool);
                    calls.caller.answering.give_back(&held).await;
                    given_back();
                    // It is in the queue again, and nothing else tells of that.
                    calls.hints.now();
                }
            }
        });
    }

    async fn go(
        &self,
        claim: Claim,
        held: Held,
        place: Option<Place>,
        asked: Instant,
        progress: Progress,
        ahead: Option<Result<Next, Refusal>>,
    ) {
        let stages = Stages::claimed(claim.ready_at.unwrap_or(claim.queued_at), asked);
        let tool = claim.request.context.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default();
        // So much of its lease may be gone that it is another's by now: the store says.
        let is_late = asked.elapsed() > Duration::from_millis(self.caller.options.lease_ms() / 3);
        let progress = if is_late { Progress::Claimed } else { progress };
        let span = tracing::info_span!("call", request = %claim.lease.request, tool, attempt = claim.attempt, trace = tracing::field::Empty);
        self.caller.run(Taken { claim, held, place, stages, progress, ahead }).instrument(span).await;
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

/// Never returns without a run that goes on.
async fn go_on(run: Option<&mut Run>) {
    match run {
        Some(run) => run.go_on().await,
        None => std::future::pending().await,
    }
}
