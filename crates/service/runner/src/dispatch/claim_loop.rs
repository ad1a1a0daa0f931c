//! Claims calls while there are free slots.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::ClaimRequest;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::coordination::backlog::Backlog;
use crate::dispatch::calls::Calls;
use crate::dispatch::claim_pacing::ClaimPacer;
use crate::dispatch::local::{LocalAdmission, LocalRegistration};
use crate::execution::telemetry;

/// How long a claim in progress can still take when the runner stops. The calls that it claimed are
/// released.
const LAST_CLAIM: Duration = Duration::from_secs(2);

pub(crate) struct ClaimLoop {
    pub calls: Arc<Calls>,
    pub pacer: ClaimPacer,
    pub poll: Duration,
    pub drain: Duration,
    /// `None` if every call comes from the queue.
    pub local: Option<LocalRegistration>,
}

impl ClaimLoop {
    /// Claims until stopped, then waits for the running calls.
    pub async fn run(mut self, stop: &CancellationToken) {
        let _owned = self.calls.dropped.clone().drop_guard();
        let registered = self.local.take().map(|local| {
            let admission = LocalAdmission::new(self.calls.clone(), local.responder);
            local.register(admission)
        });
        self.claim_until(stop, registered.as_deref()).await;
        drop(registered);
        self.calls.call_runner.options.claim_health.answered(Some("the runner is stopping".to_owned()));
        telemetry::show_draining(true);
        self.calls.finish(self.drain).await;
    }

    async fn claim_until(&mut self, stop: &CancellationToken, local: Option<&LocalAdmission>) {
        let calls = self.calls.clone();
        let (store, hints, slots) = (&*calls.call_runner.store, &*calls.hints, &*calls.slots);
        let health = calls.call_runner.options.claim_health.clone();
        let learn = |backlog| {
            if let Some(local) = local {
                local.set_backlog(backlog);
            }
        };
        let mut backoff = Backoff::default();
        // `may_wait`: the queue may hold calls that were not claimed yet. `is_behind`: it may hold
        // calls that found no slot.
        let (mut may_wait, mut is_behind) = (true, false);
        let mut poll = Instant::now();
        while !stop.is_cancelled() {
            let mut next = hints.next(poll);
            if may_wait && let Some(claim) = self.claim() {
                if let Some(pause) = self.pacer.pause(&claim) {
                    next = next.min(pause);
                } else {
                    poll = Instant::now() + self.poll;
                    let asked = Instant::now();
                    health.asked();
                    let claimed = tokio::select! {
                        claimed = store.claim(&claim) => claimed,
                        () = async { stop.cancelled().await; sleep(LAST_CLAIM).await } => break,
                    };
                    match claimed {
                        Ok(claims) => {
                            backoff.reset();
                            health.answered(None);
                            let is_full = claims.len() >= claim.limit as usize;
                            // Fewer calls than requested means that the queue is empty. A new call
                            // then gives a hint.
                            may_wait = is_full;
                            is_behind = is_full || claim.is_partial();
                            self.pacer.answered(&claim, claims.len(), asked.elapsed());
                            let backlog = |left_out| if is_full { Backlog::Any } else { Backlog::Of(left_out) };
                            // What `awaited_only` leaves out waits for places, not for slots.
                            slots.set_backlog(backlog(claim.except_tools.iter().cloned().collect()));
                            learn(backlog(claim.except_tools.into_iter().chain(claim.awaited_only).collect()));
                            if let Some(local) = local {
                                local.claimed(asked, &claims);
                            }
                            for claim in claims {
                                calls.claimed(claim, asked);
                            }
                        }
                        Err(error) => {
                            tracing::warn!(%error, "calls cannot be claimed; retrying");
                            health.answered(Some(format!("calls cannot be claimed: {error}")));
                            tokio::select! {
                                () = backoff.wait() => {}
                                () = stop.cancelled() => {}
                            }
                        }
                    }
                    continue;
                }
            } else if may_wait {
                // There may be queued calls, and none can be claimed now.
                learn(Backlog::Any);
                slots.set_backlog(Backlog::Any);
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = hints.now.notified() => may_wait = true,
                () = store.call_queued() => may_wait = true,
                () = calls.ended.notified() => {}
                () = slots.drain.changed.notified() => {}
                () = slots.freed.notified() => may_wait |= is_behind,
                () = sleep_until(next) => {
                    if next >= poll {
                        poll = Instant::now() + self.poll;
                    }
                    may_wait = true;
                }
            }
        }
    }

    /// `None` if no call can be taken now.
    fn claim(&self) -> Option<ClaimRequest> {
        let calls = &self.calls;
        if calls.slots.drain.is_on() || calls.is_writing_too_many_responses() {
            return None;
        }
        let spec = calls.slots.next_claim(calls.call_runner.tool_access.peers.tools_of_peers())?;
        let options = &calls.call_runner.options;
        Some(ClaimRequest {
            except_tools: spec.except_tools,
            awaited_only: calls.slots.awaited_only(),
            only_tools: options.only_tools.clone(),
            ..ClaimRequest::new(options.runner_id, spec.limit, options.lease_ms())
        })
    }
}
