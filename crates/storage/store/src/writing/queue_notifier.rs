//! Notifies the runners in this process that a call was queued, before its event is read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

/// How many calls were queued, for each tenant that has had a waiter.
#[derive(Default)]
pub(crate) struct QueueNotifier {
    tenants: Mutex<HashMap<Uuid, watch::Sender<u64>>>,
}

/// How many of them one waiter has seen.
#[derive(Default)]
pub(crate) struct QueueWaiter(AtomicU64);

impl QueueNotifier {
    pub(crate) fn queued(&self, owner_id: Uuid) {
        if let Some(count) = self.tenants.lock().get(&owner_id) {
            count.send_modify(|count| *count += 1);
        }
    }

    /// Returns when more calls were queued than this waiter has seen. A dropped wait does not count
    /// as seen.
    pub(crate) async fn wait(&self, owner_id: Uuid, seen: &QueueWaiter) {
        // Starts at 1, so that the first wait returns at once: calls may have been queued before
        // it.
        let mut count = self.tenants.lock().entry(owner_id).or_insert_with(|| watch::Sender::new(1)).subscribe();
        let before = seen.0.load(Ordering::Acquire);
        // The sender is never removed from the map, so the wait cannot fail.
        if let Ok(now) = count.wait_for(|count| *count != before).await {
            seen.0.store(*now, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn each_waiter_sees_each_call_once() {
        let (hints, owner) = (QueueNotifier::default(), Uuid::from_u128(1));
        let (one, other) = (QueueWaiter::default(), QueueWaiter::default());
        hints.wait(owner, &one).await;
        assert!(hints.wait(owner, &one).now_or_never().is_none());
        hints.queued(owner);
        hints.queued(owner);
        hints.queued(Uuid::from_u128(2));
        hints.wait(owner, &one).await;
        assert!(hints.wait(owner, &one).now_or_never().is_none());
        hints.wait(owner, &other).await;
        assert!(hints.wait(owner, &other).now_or_never().is_none());
    }
}
