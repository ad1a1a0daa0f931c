//! Whether a runner takes a call before its request is written. It decides from memory. A call of a
//! quick tool overtakes queued ones of that tool while they have not waited long: otherwise one
//! queued call would send all later ones to the queue, at twice the cost, while calls keep coming.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{Claim, NewBreadcrumb, ToolRequest, VersionPin};
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;
use uuid::Uuid;

use super::known_queue::KnownQueue;
use crate::coordination::backlog::Backlog;
use crate::coordination::slots::{Origin, Slot};
use crate::dispatch::calls::{Calls, WaitingForSlot, tool_of};
use crate::registry::tool::Tool;
use crate::registry::tool_rights::ToolRights;

/// Calls that are admitted without a slot, for each slot: the first number always, and up to the
/// second if slots become free fast enough for all of them.
const WAITING_PER_SLOT: (usize, usize) = (2, 64);
/// Half of `SLOT_WAIT`, since calls may become slower.
const SLOT_WAIT_TARGET: Duration = Duration::from_millis(50);
/// The duration of a tool's recent runs up to which its requests are held back: as long as a call
/// waits for its slot now, within these bounds. Request and response are then written together,
/// which takes about as long as this saves at rest, and saves a statement under load.
const QUICK_TOOL: (Duration, Duration) = (Duration::from_millis(15), Duration::from_millis(100));
/// Up to which expected wait for a slot such a request is held back. Two statements for each call
/// instead of one cost a fifth of the rate, so the more calls wait, the more it matters.
const HELD_BACK_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct LocalAdmission {
    pub(super) calls: Arc<Calls>,
    /// The agent that writes the runner's responses.
    pub(super) responder: Uuid,
    queue: Mutex<KnownQueue>,
}

/// A call that the runner takes.
pub(super) struct Admitted {
    pub admission: Arc<LocalAdmission>,
    pub tool: Arc<Tool>,
    pub slot: Option<Slot>,
    /// Until it has a slot.
    pub waiting: Option<WaitingForSlot>,
    /// Whether the request waits for the tool's result.
    pub is_held_back: bool,
    pub asked: Instant,
    /// A stopping runner waits for the calls that it admitted before.
    pub token: TaskTrackerToken,
}

impl LocalAdmission {
    pub fn new(calls: Arc<Calls>, responder: Uuid) -> Arc<Self> {
        Arc::new(Self { calls, responder, queue: Mutex::default() })
    }

    pub fn set_backlog(&self, backlog: Backlog) {
        self.queue.lock().backlog = backlog;
    }

    /// The queue had these calls to claim at this time. Awaited ones come before older calls, so
    /// they say nothing of those.
    pub fn claimed(&self, at: Instant, claims: &[Claim]) {
        let in_order = claims.iter().filter(|claim| !ToolRequest::is_awaited(&claim.request.context));
        let calls = in_order.map(|claim| (tool_of(&claim.request), claim.waited()));
        self.queue.lock().claimed(at, calls);
    }

    /// `None` leaves the call to the queue.
    pub(super) fn admit(self: &Arc<Self>, request: &NewBreadcrumb, rights: &ToolRights) -> Option<Admitted> {
        let name = request.context.get("tool")?.as_str()?;
        // Such a version may have to be read from the history.
        // A call with `debug` has effects from its first console line on.
        if VersionPin::is_named_in(&request.context) || ToolRequest::is_debugged(&request.context) {
            return None;
        }
        // Before the check of the stop.
        let (token, asked) = (self.calls.tasks.token(), Instant::now());
        let tool = self.accepted_tool(name, rights)?;
        let is_quick = tool.may_speculate() && tool.is_faster_than(self.quick_tool());
        if self.would_overtake(name, is_quick, asked) {
            return None;
        }
        // Half of the places to wait are for calls that others wait for.
        let needs_place = !ToolRequest::is_awaited(&request.context) && self.calls.slots.is_caller(name);
        if needs_place && self.calls.slots.is_short_of_places() {
            return None;
        }
        // The results of quick tools that are written with their requests are small.
        let most_writes = if is_quick { self.max_waiting().1 } else { self.calls.max_response_writes };
        if self.calls.response_writes() >= most_writes {
            return None;
        }
        let slot = self.calls.slots.take_in_turn(name, Origin::LocalDispatch);
        let (mut is_held_back, mut waiting) = (is_quick, None);
        if slot.is_none() {
            // Without a slot it would not count among the callers.
            if needs_place {
                return None;
            }
            if is_quick {
                // The time of a deadline counts from the write.
                let has_deadline = request.context.contains_key("deadline_ms");
                waiting = self.wait_within(name, if has_deadline { QUICK_TOOL.0 } else { HELD_BACK_WAIT });
            }
            is_held_back = waiting.is_some();
            if waiting.is_none() {
                waiting = Some(self.wait(name)?);
            }
        }
        Some(Admitted { admission: self.clone(), tool, slot, waiting, is_held_back, asked, token })
    }

    fn accepted_tool(&self, tool: &str, rights: &ToolRights) -> Option<Arc<Tool>> {
        let runner = &self.calls.call_runner;
        let takes_none = runner.stop.is_cancelled() || self.calls.slots.drain.is_on();
        if takes_none { None } else { runner.tool_access.ready_now(tool, rights) }
    }

    /// Whether a call of this tool would overtake queued ones that it must not overtake.
    fn would_overtake(&self, tool: &str, is_quick: bool, now: Instant) -> bool {
        let queue = self.queue.lock();
        queue.backlog.may_hold(tool) && !(is_quick && queue.may_overtake(tool, now))
    }

    /// `None` if too many calls wait already.
    fn wait(&self, tool: &str) -> Option<WaitingForSlot> {
        let (least, most) = self.max_waiting();
        self.calls.wait_if_fewer_than(self.expected_free_within(tool, SLOT_WAIT_TARGET).clamp(least, most))
    }

    /// `None` if the call is not likely to have a slot within this time.
    fn wait_within(&self, tool: &str, time: Duration) -> Option<WaitingForSlot> {
        self.calls.wait_if_fewer_than(self.expected_free_within(tool, time).min(self.max_waiting().1))
    }

    /// The present value of [`QUICK_TOOL`].
    fn quick_tool(&self) -> Duration {
        self.calls.slots.expected_wait(self.calls.waiting()).clamp(QUICK_TOOL.0, QUICK_TOOL.1)
    }

    fn max_waiting(&self) -> (usize, usize) {
        let slots = self.calls.call_runner.options.max_calls.max(1);
        (WAITING_PER_SLOT.0 * slots, WAITING_PER_SLOT.1 * slots)
    }

    fn expected_free_within(&self, tool: &str, time: Duration) -> usize {
        self.calls.slots.expected_free_within(tool, time).unwrap_or(0)
    }
}
