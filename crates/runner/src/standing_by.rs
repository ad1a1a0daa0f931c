//! Takes calls as they are written, in a process that writes requests: at rest, and as long as nobody waits in the queue
//! that would be passed over.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use breadcrumb::{Birth, Offer, Profiles, Standby};
use tokio::time::Instant;

use crate::calls::Calls;

/// Calls that were taken on without a place, for each place: so many in any case, and at most so many, where places come
/// free so fast that each of them has one in time.
const WAITING_PER_PLACE: (usize, usize) = (2, 16);
/// What "in time" is: half of `PLACE_SOON`, since it may go on slower.
const IN_TIME: Duration = Duration::from_millis(50);

pub(crate) struct Standing {
    calls: Arc<Calls>,
    backlog: Mutex<Backlog>,
}

/// A call that was taken on without a place, until it has one.
pub(crate) struct Waiting {
    _counted: Arc<()>,
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
        Arc::new(Self { calls, backlog: Mutex::default() })
    }

    /// `None` where too many wait already.
    fn wait(&self, tool: &str) -> Option<Waiting> {
        let (calls, (least, most)) = (&self.calls, WAITING_PER_PLACE);
        let places = calls.caller.options.max_calls.max(1);
        let soon = calls.places.soon(tool, IN_TIME).unwrap_or(0).clamp(least * places, most * places);
        (calls.waiting() < soon).then(|| Waiting { _counted: calls.waiting.clone() })
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
        let (options, offered) = (&caller.options, Instant::now());
        let offer = |max_attempts, begin| Offer::new(options.runner_id, options.lease_ms(), max_attempts, begin);
        if let Some(place) = calls.places.take(tool.name()) {
            let (max_attempts, behind) = (tool.definition.limits.max_attempts, standing.clone());
            let behind = move || behind.learn(Backlog::Any);
            let begun = calls.begins(birth(), tool, place, offered, behind);
            return Some(offer(
                Some(max_attempts),
                Box::new(move |at| {
                    begun(at);
                    drop(expected);
                }),
            ));
        }
        let (waiting, birth, standing) = (standing.wait(tool.name())?, birth(), standing.clone());
        Some(offer(
            None,
            Box::new(move |at| {
                let behind = standing.clone();
                standing.calls.promised(birth.claim(at), waiting, offered, move || behind.learn(Backlog::Any));
                drop(expected);
            }),
        ))
    }
}
