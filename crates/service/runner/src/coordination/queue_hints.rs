//! Hints that the queue may hold calls. Several hints are merged into one.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

/// How many claimed requests are remembered. Their events arrive later and must not count as hints.
const KNOWN: usize = 4096;

#[derive(Default)]
pub(crate) struct QueueHints {
    pub now: Notify,
    later: Mutex<BTreeSet<Instant>>,
    claimed: Mutex<Claimed>,
}

#[derive(Default)]
struct Claimed {
    known: HashSet<Uuid>,
    /// Oldest first.
    order: VecDeque<Uuid>,
}

impl QueueHints {
    pub fn now(&self) {
        self.now.notify_one();
    }

    /// This request was written. It does not count as a hint if this runner has already claimed it.
    pub fn written(&self, request: Uuid) {
        if !self.claimed.lock().known.contains(&request) {
            self.now();
        }
    }

    pub fn claimed(&self, request: Uuid) {
        let mut claimed = self.claimed.lock();
        if claimed.known.insert(request) {
            claimed.order.push_back(request);
        }
        if claimed.order.len() > KNOWN
            && let Some(oldest) = claimed.order.pop_front()
        {
            claimed.known.remove(&oldest);
        }
    }

    /// A call was released and can be claimed again after this time.
    pub fn after(&self, delay: Duration) {
        self.later.lock().insert(Instant::now() + delay);
        self.now();
    }

    /// The next time to claim, at the latest `poll`. Drops times in the past.
    pub fn next(&self, poll: Instant) -> Instant {
        let mut later = self.later.lock();
        let now = Instant::now();
        *later = later.split_off(&now);
        later.first().map_or(poll, |first| poll.min(*first))
    }
}
