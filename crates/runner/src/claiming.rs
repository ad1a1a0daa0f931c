//! Takes calls while there is room, and owns the tasks that run them.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{Claim, ClaimRequest};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::backoff::Backoff;
use crate::call::Caller;
use crate::hints::Hints;
use crate::pace::Pace;
use crate::places::Places;
use crate::stages::Stages;

/// How long a claim may still take when the runner is told to stop: what it brings is given back.
const LAST_CLAIM: Duration = Duration::from_secs(2);

pub(crate) struct Claiming {
    pub caller: Arc<Caller>,
    pub hints: Arc<Hints>,
    pub places: Arc<Places>,
    /// The most calls that are not running any more and whose answers are still being written.
    pub max_answering: usize,
    pub pace: Pace,
    pub poll: Duration,
    pub drain: Duration,
    pub calls: JoinSet<()>,
}

impl Claiming {
    /// Claims until told to stop, then waits for the running calls: up to the drain time to their end, after that
    /// until they have stopped.
    pub async fn run(mut self, stop: &CancellationToken) {
        let mut backoff = Backoff::default();
        // Whether calls may wait that were not asked for, and whether some wait for which there was no room.
        let (mut may_wait, mut is_behind) = (true, false);
        let mut poll = Instant::now();
        while !stop.is_cancelled() {
            let mut next = self.hints.next(poll);
            if may_wait && let Some(claim) = self.claim() {
                if let Some(pause) = self.pace.pause(&claim) {
                    next = next.min(pause);
                } else {
                    poll = Instant::now() + self.poll;
                    let asked = Instant::now();
                    let answer = tokio::select! {
                        answer = self.caller.store.claim(&claim) => answer,
                        () = async { stop.cancelled().await; sleep(LAST_CLAIM).await } => break,
                    };
                    match answer {
                        Ok(claims) => {
                            backoff.reset();
                            let is_full = claims.len() >= claim.limit as usize;
                            // Fewer than asked for, of any tool: the queue is empty, and what comes gives a hint.
                            may_wait = is_full;
                            is_behind = is_full || !claim.except_tools.is_empty();
                            self.pace.answered(&claim, claims.len(), asked.elapsed());
                            for claim in claims {
                                self.begin(claim, asked);
                            }
                        }
                        Err(error) => {
                            tracing::warn!(%error, "claiming failed");
                            tokio::select! {
                                () = backoff.wait() => {}
                                () = stop.cancelled() => {}
                            }
                        }
                    }
                    continue;
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.hints.now.notified() => may_wait = true,
                () = self.caller.store.call_queued() => may_wait = true,
                () = self.places.freed.notified() => may_wait |= is_behind,
                () = sleep_until(next) => {
                    if next >= poll {
                        poll = Instant::now() + self.poll;
                    }
                    may_wait = true;
                }
                Some(ended) = self.calls.join_next() => Self::ended(ended),
            }
        }
        self.finish().await;
    }

    /// `None` where nothing can be taken now.
    fn claim(&self) -> Option<ClaimRequest> {
        if self.calls.len() >= self.places.taken() + self.max_answering {
            return None;
        }
        let ask = self.places.ask(self.caller.finding.elsewhere.left_to_others())?;
        Some(ClaimRequest {
            runner_id: self.caller.options.runner_id,
            limit: ask.limit,
            lease_ms: self.caller.options.lease_ms(),
            except_tools: ask.except_tools,
        })
    }

    fn begin(&mut self, claim: Claim, asked: Instant) {
        self.hints.claimed(claim.lease.request);
        let held = self.caller.leases.keep(claim.lease, asked);
        let caller = self.caller.clone();
        let tool = claim.request.context.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default();
        let Some(place) = self.places.take(tool) else {
            self.calls.spawn(async move { caller.answering.give_back(&held).await });
            return;
        };
        let span = tracing::info_span!("call", request = %claim.lease.request, tool, attempt = claim.attempt, trace = tracing::field::Empty);
        let stages = Stages::claimed(claim.ready_at.unwrap_or(claim.queued_at), asked);
        self.calls.spawn(async move { caller.run(claim, held, place, stages).await }.instrument(span));
    }

    fn ended(ended: Result<(), tokio::task::JoinError>) {
        if let Err(error) = ended {
            // Its lease ends by itself, and the store answers.
            tracing::error!(%error, "a call's task failed");
        }
    }

    async fn finish(&mut self) {
        if !self.calls.is_empty() {
            tracing::info!(calls = self.calls.len(), "waiting for running calls");
        }
        let drained = sleep(self.drain);
        tokio::pin!(drained);
        let mut is_over = false;
        loop {
            tokio::select! {
                ended = self.calls.join_next() => match ended {
                    Some(ended) => Self::ended(ended),
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
