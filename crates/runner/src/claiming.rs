//! Takes calls while there is room, and owns the tasks that run them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use breadcrumb::{Claim, ClaimRequest};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::backoff::Backoff;
use crate::call::Caller;
use crate::room::Room;
use crate::stages::Stages;

/// How long a claim may still take when the runner is told to stop: what it brings is given back.
const LAST_CLAIM: Duration = Duration::from_secs(2);

/// Hints that the queue may hold something. Many hints are one.
#[derive(Default)]
pub(crate) struct Hints {
    now: Notify,
    later: Mutex<BTreeSet<Instant>>,
}

impl Hints {
    pub fn now(&self) {
        self.now.notify_one();
    }

    /// A call was given back and may be claimed again after this time.
    pub fn after(&self, delay: Duration) {
        self.later.lock().unwrap_or_else(PoisonError::into_inner).insert(Instant::now() + delay);
        self.now.notify_one();
    }

    /// The next moment to ask, at the latest `poll`; moments that are past are forgotten.
    fn next(&self, poll: Instant) -> Instant {
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        *later = later.split_off(&now);
        later.first().map_or(poll, |first| poll.min(*first))
    }
}

pub(crate) struct Claiming {
    pub caller: Arc<Caller>,
    pub hints: Arc<Hints>,
    pub room: Room,
    pub poll: Duration,
    pub drain: Duration,
    /// The tool of each task.
    pub calls: JoinSet<()>,
    pub tools: HashMap<tokio::task::Id, String>,
}

impl Claiming {
    /// Claims until told to stop, then waits for the running calls: up to the drain time to their end, after that
    /// until they have stopped.
    pub async fn run(mut self, stop: &CancellationToken) {
        let mut backoff = Backoff::default();
        // Whether the queue may hold more than there was room for.
        let mut may_wait = true;
        let mut poll = Instant::now();
        while !stop.is_cancelled() {
            if may_wait && let Some(ask) = self.room.ask() {
                let claim = ClaimRequest {
                    runner_id: self.caller.options.runner_id,
                    limit: ask.limit,
                    lease_ms: self.caller.options.lease_ms(),
                    except_tools: ask.except_tools,
                };
                poll = Instant::now() + self.poll;
                let asked = Instant::now();
                let answer = tokio::select! {
                    answer = self.caller.store.claim(&claim) => answer,
                    () = async { stop.cancelled().await; sleep(LAST_CLAIM).await } => break,
                };
                match answer {
                    Ok(claims) => {
                        backoff.reset();
                        // Fewer than asked for, of any tool: the queue is empty, and what comes makes an event.
                        may_wait = claims.len() >= claim.limit as usize || !claim.except_tools.is_empty();
                        let more = claims.len() >= claim.limit as usize;
                        for claim in claims {
                            self.begin(claim, asked);
                        }
                        if more {
                            continue;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "claiming failed");
                        tokio::select! {
                            () = backoff.wait() => {}
                            () = stop.cancelled() => {}
                        }
                        continue;
                    }
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.hints.now.notified() => may_wait = true,
                () = sleep_until(self.hints.next(poll)) => {
                    may_wait = true;
                    poll = Instant::now() + self.poll;
                }
                Some(ended) = self.calls.join_next_with_id() => self.ended(ended),
            }
        }
        self.finish().await;
    }

    fn begin(&mut self, claim: Claim, asked: Instant) {
        let tool = claim.request.context.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default().to_owned();
        let span = tracing::info_span!("call", request = %claim.lease.request, tool, attempt = claim.attempt, trace = tracing::field::Empty);
        let held = self.caller.leases.keep(claim.lease, asked);
        self.room.take(&tool);
        let stages = Stages::claimed(claim.ready_at.unwrap_or(claim.queued_at), asked);
        let caller = self.caller.clone();
        let task = self.calls.spawn(async move { caller.run(claim, held, stages).await }.instrument(span));
        self.tools.insert(task.id(), tool);
    }

    fn ended(&mut self, ended: Result<(tokio::task::Id, ()), tokio::task::JoinError>) {
        let task = match ended {
            Ok((task, ())) => task,
            Err(error) => {
                // Its lease ends by itself, and the store answers.
                tracing::error!(%error, "a call's task failed");
                error.id()
            }
        };
        if let Some(tool) = self.tools.remove(&task) {
            self.room.leave(&tool);
        }
    }

    async fn finish(&mut self) {
        if self.room.taken() > 0 {
            tracing::info!(calls = self.room.taken(), "waiting for running calls");
        }
        let drained = sleep(self.drain);
        tokio::pin!(drained);
        let mut is_over = false;
        loop {
            tokio::select! {
                ended = self.calls.join_next_with_id() => match ended {
                    Some(ended) => self.ended(ended),
                    None => return,
                },
                () = &mut drained, if !is_over => {
                    is_over = true;
                    self.caller.drained.cancel();
                }
            }
        }
    }
}
