//! Takes calls as they are written, in a process that writes requests: at rest, and as long as nobody waits in the queue
//! that would be passed over.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use breadcrumb::{Admission, LocalRunner, Profiles, Reservation, SpeculativeResponse, UncommittedCall};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::calls::Calls;
use crate::tool::Tool;
use crate::unwritten::Unwritten;

/// Calls that were taken on without a place, for each place: so many in any case, and at most so many, where places come
/// free so fast that each of them has one in time.
const WAITING_PER_PLACE: (usize, usize) = (2, 16);
/// What "in time" is: half of `PLACE_SOON`, since it may go on slower.
const IN_TIME: Duration = Duration::from_millis(50);

/// How quick a tool is whose requests are kept back until its answer is there: the two are written in one, which takes about
/// as long as this saves at rest, and under load spares a statement.
const AT_ONCE: Duration = Duration::from_millis(15);
/// How long at most, where it takes longer than it did of late.
const KEPT_BACK: Duration = Duration::from_millis(30);

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
        let (least, most) = self.waiting_at_most();
        self.wait_behind(self.soon(tool, IN_TIME).clamp(least, most))
    }

    /// `None` where it is not likely to have its place within this time.
    fn wait_within(&self, tool: &str, time: Duration) -> Option<Waiting> {
        self.wait_behind(self.soon(tool, time).min(self.waiting_at_most().1))
    }

    fn waiting_at_most(&self) -> (usize, usize) {
        let places = self.calls.caller.options.max_calls.max(1);
        (WAITING_PER_PLACE.0 * places, WAITING_PER_PLACE.1 * places)
    }

    fn soon(&self, tool: &str, time: Duration) -> usize {
        self.calls.places.soon(tool, time).unwrap_or(0)
    }

    fn wait_behind(&self, most: usize) -> Option<Waiting> {
        (self.calls.waiting() < most).then(|| Waiting { _counted: self.calls.waiting.clone() })
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

impl AtHand {
    /// The tool, where its calls are taken on now.
    fn taken(&self, tool: &str, profiles: &Profiles) -> Option<Arc<Tool>> {
        let Self(standing) = self;
        let calls = &standing.calls;
        let passes_over = match &*standing.backlog() {
            Backlog::Any => true,
            Backlog::Of(tools) => tools.contains(tool),
        };
        if passes_over || calls.caller.stop.is_cancelled() || calls.is_answering_too_many() {
            return None;
        }
        calls.caller.finding.ready_now(tool, profiles)
    }

    fn begins(&self, unwritten: Unwritten, expected: TaskTrackerToken) -> Reservation {
        let behind = self.0.clone();
        let max_attempts = unwritten.place.is_some().then_some(unwritten.tool.definition.limits.max_attempts);
        let begun = self.0.calls.begins(unwritten, move || behind.learn(Backlog::Any));
        self.reserve(max_attempts, move |admitted| {
            begun(admitted);
            drop(expected);
        })
    }

    fn reserve(&self, max_attempts: Option<u32>, begin: impl FnOnce(Admission) + Send + Sync + 'static) -> Reservation {
        let options = &self.0.calls.caller.options;
        Reservation::new(options.runner_id, options.lease_ms(), max_attempts, Box::new(begin))
    }
}

impl LocalRunner for AtHand {
    fn reserve(
        &self,
        tool: &str,
        profiles: &Profiles,
        uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<Reservation> {
        let calls = &self.0.calls;
        // Before the look at the stop: who ends waits for what was promised before.
        let (expected, asked) = (calls.expect(), Instant::now());
        let tool = self.taken(tool, profiles)?;
        let place = calls.places.take(tool.name());
        if place.is_some() {
            let unwritten = Unwritten { uncommitted: uncommitted(), tool, place, waiting: None, asked, answer: None };
            return Some(self.begins(unwritten, expected));
        }
        let (waiting, uncommitted, standing) = (self.0.wait(tool.name())?, uncommitted(), self.0.clone());
        Some(self.reserve(None, move |admitted| {
            // Nobody has answered it.
            let Admission::Claimed(at) = admitted else { return };
            let behind = standing.clone();
            standing.calls.promised(uncommitted.claim(at), waiting, asked, move || behind.learn(Backlog::Any));
            drop(expected);
        }))
    }

    fn reserve_speculative(
        &self,
        tool: &str,
        profiles: &Profiles,
        uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<(Reservation, SpeculativeResponse)> {
        let calls = &self.0.calls;
        let (expected, asked) = (calls.expect(), Instant::now());
        let tool = self.taken(tool, profiles)?;
        if !tool.may_compute_ahead() || !tool.is_quicker_than(AT_ONCE) {
            return None;
        }
        let place = calls.places.take(tool.name());
        let waiting = if place.is_some() { None } else { Some(self.0.wait_within(tool.name(), AT_ONCE)?) };
        let (say, answer) = oneshot::channel();
        let unwritten = Unwritten { uncommitted: uncommitted(), tool, place, waiting, asked, answer: Some(say) };
        let reservation = self.begins(unwritten, expected);
        Some((reservation, Box::pin(async move { timeout(KEPT_BACK, answer).await.ok()?.ok() })))
    }
}
