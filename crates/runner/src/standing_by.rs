//! Takes calls as they are written, in a process that writes requests: at rest, and as long as nobody waits in the queue
//! that would be passed over.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use breadcrumb::{Birth, Offer, Profiles, Standby};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::calls::Calls;

/// Calls that were promised a place and have none yet, for each place: they wait for the disk, and then a moment for the
/// place. In a crash they count as running.
const PROMISED_PER_PLACE: usize = 2;

pub(crate) struct Standing {
    calls: Arc<Calls>,
    backlog: Mutex<Backlog>,
    promises: Arc<Semaphore>,
}

/// Who waits in the queue, as far as the last claim told.
#[derive(Debug, Default)]
pub(crate) enum Backlog {
    /// There may be calls of any tool that had no place.
    #[default]
    Any,
    /// Only calls of these tools, which were left out.
    Of(HashSet<String>),
}

impl Standing {
    pub fn new(calls: Arc<Calls>) -> Arc<Self> {
        let promises = Arc::new(Semaphore::new(PROMISED_PER_PLACE * calls.caller.options.max_calls.max(1)));
        Arc::new(Self { calls, backlog: Mutex::default(), promises })
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn learn(&self, backlog: Backlog) {
        *self.backlog() = backlog;
    }
}

/// The store's end of it.
pub(crate) struct AtHand(pub Arc<Standing>);

impl Standby for AtHand {
    fn offer(&self, tool: &str, profiles: &Profiles, birth: &dyn Fn() -> Birth) -> Option<Offer> {
        let Self(standing) = self;
        let calls = &standing.calls;
        let caller = &calls.caller;
        // Before the look at the stop: who ends waits for what was promised before.
        let expected = calls.expect();
        let passes_over = match &*standing.backlog() {
            Backlog::Any => true,
            Backlog::Of(tools) => tools.contains(tool),
        };
        if passes_over || caller.stop.is_cancelled() || calls.is_answering_too_many() {
            return None;
        }
        let tool = caller.finding.ready_now(tool, profiles)?;
        let promise = standing.promises.clone().try_acquire_owned().ok()?;
        let offered = Instant::now();
        let (options, max_attempts) = (&caller.options, tool.definition.limits.max_attempts);
        let (birth, offer) = (birth(), |begin| Offer::new(options.runner_id, options.lease_ms(), max_attempts, begin));
        if tool.may_run_ahead()
            && let Some(place) = calls.places.take(tool.name())
        {
            let begun = calls.ahead(birth, tool, place, offered);
            return Some(offer(Box::new(move |at| {
                begun(at);
                drop((promise, expected));
            })));
        }
        let standing = standing.clone();
        Some(offer(Box::new(move |at| {
            let behind = standing.clone();
            standing.calls.begun(birth.claim(at), max_attempts, promise, offered, move || behind.learn(Backlog::Any));
            drop(expected);
        })))
    }
}
