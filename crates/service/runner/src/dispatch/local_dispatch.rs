//! Local dispatch: takes calls while their requests are written, in a process that writes requests,
//! as long as this does not overtake calls in the queue.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rcrt_breadcrumb::{Admission, LocalRunner, Profiles, Reservation, SpeculativeResponse, UncommittedCall};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::dispatch::calls::Calls;
use crate::execution::speculative_call::SpeculativeCall;
use crate::registry::tool::Tool;

/// Calls that were accepted without a slot, for each slot: the first number always, and up to the
/// second if slots become free fast enough for all of them.
const WAITING_PER_SLOT: (usize, usize) = (2, 16);
/// What "in time" is: half of `SLOT_WAIT`, since it may go on slower.
const SLOT_WAIT_TARGET: Duration = Duration::from_millis(50);

/// How fast a tool is whose requests are held back until its response is ready. The two are written
/// together, which takes about as long as this saves at rest, and saves a statement under load.
const QUICK_TOOL: Duration = Duration::from_millis(15);
/// The maximum, if a run takes longer than recent ones.
const MAX_HOLD_BACK: Duration = Duration::from_millis(30);

pub(crate) struct LocalAdmission {
    calls: Arc<Calls>,
    backlog: Mutex<Backlog>,
}

/// A call that was accepted without a slot, until it has one.
pub(crate) struct WaitingForSlot {
    _counted: Arc<()>,
}

/// Which calls are in the queue, as far as the last claim showed.
#[derive(Debug, Default)]
pub(crate) enum Backlog {
    /// There may be calls of any tool that had no slot.
    #[default]
    Any,
    /// Only calls of these tools, which were left out.
    Of(HashSet<String>),
}

impl LocalAdmission {
    pub fn new(calls: Arc<Calls>) -> Arc<Self> {
        Arc::new(Self { calls, backlog: Mutex::default() })
    }

    /// `None` where too many wait already.
    fn wait(&self, tool: &str) -> Option<WaitingForSlot> {
        let (least, most) = self.waiting_at_most();
        self.wait_if_fewer_than(self.expected_free_within(tool, SLOT_WAIT_TARGET).clamp(least, most))
    }

    /// `None` where it is not likely to have its slot within this time.
    fn wait_within(&self, tool: &str, time: Duration) -> Option<WaitingForSlot> {
        self.wait_if_fewer_than(self.expected_free_within(tool, time).min(self.waiting_at_most().1))
    }

    fn waiting_at_most(&self) -> (usize, usize) {
        let slots = self.calls.call_runner.options.max_calls.max(1);
        (WAITING_PER_SLOT.0 * slots, WAITING_PER_SLOT.1 * slots)
    }

    fn expected_free_within(&self, tool: &str, time: Duration) -> usize {
        self.calls.slots.expected_free_within(tool, time).unwrap_or(0)
    }

    fn wait_if_fewer_than(&self, most: usize) -> Option<WaitingForSlot> {
        (self.calls.waiting() < most).then(|| WaitingForSlot { _counted: self.calls.waiting.clone() })
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock()
    }

    pub fn learn(&self, backlog: Backlog) {
        *self.backlog() = backlog;
    }
}

/// The store's end of it.
pub(crate) struct LocalDispatcher(pub Arc<LocalAdmission>);

impl LocalDispatcher {
    /// The tool, if its calls are accepted now.
    fn accepted_tool(&self, tool: &str, profiles: &Profiles) -> Option<Arc<Tool>> {
        let Self(local_admission) = self;
        let calls = &local_admission.calls;
        let passes_over = match &*local_admission.backlog() {
            Backlog::Any => true,
            Backlog::Of(tools) => tools.contains(tool),
        };
        if passes_over || calls.call_runner.stop.is_cancelled() || calls.is_writing_too_many_responses() {
            return None;
        }
        calls.call_runner.tool_access.ready_now(tool, profiles)
    }

    fn begins(&self, speculative_call: SpeculativeCall, expected: TaskTrackerToken) -> Reservation {
        let behind = self.0.clone();
        let max_attempts =
            speculative_call.slot.is_some().then_some(speculative_call.tool.definition.limits.max_attempts);
        let begun = self.0.calls.begins(speculative_call, move || behind.learn(Backlog::Any));
        self.reserve(max_attempts, move |admitted| {
            begun(admitted);
            drop(expected);
        })
    }

    fn reserve(&self, max_attempts: Option<u32>, begin: impl FnOnce(Admission) + Send + Sync + 'static) -> Reservation {
        let options = &self.0.calls.call_runner.options;
        Reservation::new(options.runner_id, options.lease_ms(), max_attempts, Box::new(begin))
    }
}

impl LocalRunner for LocalDispatcher {
    fn reserve(
        &self,
        tool: &str,
        profiles: &Profiles,
        uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<Reservation> {
        let calls = &self.0.calls;
        // Before the check of the stop: a stopping runner waits for what was promised before.
        let (expected, asked) = (calls.expect(), Instant::now());
        let tool = self.accepted_tool(tool, profiles)?;
        let slot = calls.slots.take(tool.name());
        if slot.is_some() {
            let speculative_call =
                SpeculativeCall { uncommitted: uncommitted(), tool, slot, waiting: None, asked, answer: None };
            return Some(self.begins(speculative_call, expected));
        }
        let (waiting, uncommitted, local_admission) = (self.0.wait(tool.name())?, uncommitted(), self.0.clone());
        Some(self.reserve(None, move |admitted| {
            // No response yet.
            let Admission::Claimed(at) = admitted else { return };
            let behind = local_admission.clone();
            local_admission.calls.promised(uncommitted.claim(at), waiting, asked, move || behind.learn(Backlog::Any));
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
        let tool = self.accepted_tool(tool, profiles)?;
        if !tool.may_speculate() || !tool.is_quicker_than(QUICK_TOOL) {
            return None;
        }
        let slot = calls.slots.take(tool.name());
        let waiting = if slot.is_some() { None } else { Some(self.0.wait_within(tool.name(), QUICK_TOOL)?) };
        let (say, answer) = oneshot::channel();
        let speculative_call =
            SpeculativeCall { uncommitted: uncommitted(), tool, slot, waiting, asked, answer: Some(say) };
        let reservation = self.begins(speculative_call, expected);
        Some((reservation, Box::pin(async move { timeout(MAX_HOLD_BACK, answer).await.ok()?.ok() })))
    }
}
