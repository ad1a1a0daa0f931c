//! The leases of all active calls, extended by common heartbeats. Each call learns the state of its
//! own lease.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use rcrt_breadcrumb::{CallQueue, Lease, LeaseStatus};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The maximum number of leases in one heartbeat.
const BATCH: usize = 100;
/// The maximum number of concurrent heartbeats. Those of a thousand leases must not take every
/// connection and processor from calls, and a slow one must not delay the others.
const AT_ONCE: usize = 2;

pub(crate) struct Leases {
    store: Arc<dyn CallQueue>,
    lease_ms: u64,
    entries: Mutex<HashMap<Lease, HeldLease>>,
    at_once: Notify,
}

struct HeldLease {
    cancel: CancellationToken,
    lost: CancellationToken,
    /// When the lease expires without another heartbeat. Counted from before the request to the
    /// store, so it is never later than the store's own time.
    until: Instant,
}

/// A call's handle on its lease. Dropping it stops the heartbeats.
pub(crate) struct LeaseGuard {
    pub lease: Lease,
    /// Cancelled when the call's cancellation is requested.
    pub cancel: CancellationToken,
    /// Cancelled when the lease is lost: stop, and write nothing.
    pub lost: CancellationToken,
    leases: Arc<Leases>,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.leases.entries.lock().remove(&self.lease);
    }
}

impl Leases {
    pub fn new(store: Arc<dyn CallQueue>, lease_ms: u64) -> Arc<Self> {
        Arc::new(Self { store, lease_ms, entries: Mutex::default(), at_once: Notify::new() })
    }

    fn length(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// Holds a lease that was requested at `asked`.
    pub fn keep(self: &Arc<Self>, lease: Lease, asked: Instant) -> LeaseGuard {
        let (cancel, lost) = (CancellationToken::new(), CancellationToken::new());
        let entry = HeldLease { cancel: cancel.clone(), lost: lost.clone(), until: asked + self.length() };
        self.entries.lock().insert(lease, entry);
        if asked.elapsed() > self.length() / 3 {
            // The next regular heartbeat may be too late for it.
            self.at_once.notify_one();
        }
        LeaseGuard { lease, cancel, lost, leases: self.clone() }
    }

    /// This request's record changed: queries the state of its lease, if it is ours.
    pub fn check_soon(&self, request: Uuid) {
        if self.entries.lock().keys().any(|lease| lease.request == request) {
            self.at_once.notify_one();
        }
    }

    /// Sends heartbeats until stopped.
    pub async fn run(&self, stop: CancellationToken) {
        let third = self.length() / 3;
        let mut next = Instant::now() + third;
        loop {
            let wake =
                self.entries.lock().values().map(|entry| entry.until).min().map_or(next, |until| until.min(next));
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.at_once.notified() => {}
                () = sleep_until(wake) => {}
            }
            self.drop_ended();
            self.beat(third).await;
            self.drop_ended();
            next = Instant::now() + third;
        }
    }

    async fn beat(&self, patience: Duration) {
        let leases: Vec<Lease> = self.entries.lock().keys().copied().collect();
        let beats =
            stream::iter(leases.chunks(BATCH)).for_each_concurrent(AT_ONCE, |batch| self.beat_batch(batch, patience));
        // One timeout for all batches: a store that hangs must not delay giving up expired leases.
        if timeout(patience, beats).await.is_err() {
            tracing::warn!(leases = leases.len(), "heartbeats took too long, and some were not sent");
        }
    }

    async fn beat_batch(&self, batch: &[Lease], patience: Duration) {
        let asked = Instant::now();
        let outcome = timeout(patience, self.store.heartbeat(batch, self.lease_ms)).await;
        let held = match outcome {
            Ok(Ok(held)) => held,
            Ok(Err(error)) => return tracing::warn!(%error, leases = batch.len(), "a heartbeat failed"),
            Err(_) => return tracing::warn!(leases = batch.len(), "a heartbeat timed out"),
        };
        let mut entries = self.entries.lock();
        for one in held {
            let Some(entry) = entries.get_mut(&one.lease) else { continue };
            match one.status {
                LeaseStatus::Held => entry.until = asked + self.length(),
                LeaseStatus::CancelRequested => {
                    entry.until = asked + self.length();
                    entry.cancel.cancel();
                }
                LeaseStatus::Lost => {
                    entries.remove(&one.lease).inspect(|entry| entry.lost.cancel());
                }
            }
        }
    }

    /// A lease that was not extended in time is lost, because another runner may have claimed the
    /// call.
    fn drop_ended(&self) {
        let now = Instant::now();
        self.entries.lock().retain(|lease, entry| {
            let ended = entry.until <= now;
            if ended {
                tracing::warn!(request = %lease.request, "the lease expired without a heartbeat");
                entry.lost.cancel();
            }
            !ended
        });
    }
}
