//! Notifies the runners in this process that a call was queued, before its event is read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

/// How many calls were queued in each tenant that somebody has waited in.
#[derive(Default)]
pub(crate) struct QueueNotifier {
    tenants: Mutex<HashMap<Uuid, watch::Sender<u64>>>,
}

/// How many of them one waiter has seen.
#[derive(Default)]
pub(crate) struct QueueWaiter(AtomicU64);

impl QueueNotifier {
    fn locked(&self) -> MutexGuard<'_, HashMap<Uuid, watch::Sender<u64>>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn queued(&self, owner_id: Uuid) {
        if let Some(count) = self.locked().get(&owner_id) {
            count.send_modify(|count| *count += 1);
        }
    }

    /// Returns when there are more than were seen. A wait that is dropped counts as not seen.
    pub(crate) async fn wait(&self, owner_id: Uuid, heard: &QueueWaiter) {
        // From 1, so that the first wait returns at once: nothing was counted before.
        let mut count = self.locked().entry(owner_id).or_insert_with(|| watch::Sender::new(1)).subscribe();
        let before = heard.0.load(Ordering::Acquire);
        // The sender stays in the map.
        if let Ok(now) = count.wait_for(|count| *count != before).await {
            heard.0.store(*now, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn each_waiter_hears_of_each_call_once() {
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
