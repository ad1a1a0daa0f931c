//! The slots in which calls run. A CPU-bound call has a worker process. An I/O-bound call only
//! waits and has none. Each kind has its own pool, so a thousand waiting calls do not keep workers
//! idle.
//!
//! The kind of a queued call is unknown before it is claimed. While one kind is full, claims
//! exclude the tools of that kind that are known to have queued calls. A call of an unknown tool is
//! released, and its kind is known from then on.
//!
//! A call that waits for a call that it made gives its slot to others, and takes it back when the
//! response is there, even if no slot is free then. So calls never wait for a slot of their own
//! caller. The number of such calls is limited, because each has a worker process. Half of the
//! places are for calls that others wait for: beyond it, new calls of tools that can call others
//! stay in the queue. Beyond the limit, callers keep their slots while they wait, as long as one
//! slot remains for others.

mod slot;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{RunnerSlots, SlotCount};
use tokio::sync::Notify;

pub(crate) use self::slot::Slot;
use crate::coordination::backlog::Backlog;
use crate::coordination::drain_request::DrainRequest;
use crate::coordination::slot_gauges::SlotGauges;
use crate::coordination::slot_pool::{ClaimSpec, SlotPool};
use crate::coordination::waiting_calls::WaitingCalls;
use crate::registry::Registry;

/// The maximum number of tools that a claim excludes.
const MAX_EXCEPT: usize = 1000;

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    CpuBound,
    IoBound,
}

pub(crate) struct Slots {
    registry: Arc<Registry>,
    inner: Mutex<Inner>,
    /// Notified when a slot becomes free.
    pub freed: Notify,
    /// Admitted calls may have to leave slots to queued ones, so these do not wait behind them.
    queued: WaitingCalls,
    admitted: WaitingCalls,
    /// While it is on, no more calls are taken.
    pub drain: DrainRequest,
}

struct Inner {
    cpu_bound: SlotPool,
    io_bound: SlotPool,
    /// Tools whose kind was full when one of their calls arrived, until a slot of that kind is
    /// free. A slot of the other kind does not count: otherwise the same calls would be claimed and
    /// released repeatedly.
    excluded: HashMap<String, Kind>,
    /// How many calls to claim while one kind is full. It grows with each claimed call of the other
    /// kind.
    claim_limit: u32,
    /// The calls that wait for others without their slot, or are about to.
    parked: usize,
    max_parked: usize,
    /// The calls that wait for others in their slot.
    blocked: usize,
    /// The recent duration of CPU-bound calls in their slots; zero before the first.
    average_hold: Duration,
    /// The queued calls that wait for slots. Admitted calls of the same tools leave some to them.
    backlog: Backlog,
    gauges: SlotGauges,
}

/// Where a call that needs a slot comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Queue,
    /// It was admitted before its request was written.
    LocalDispatch,
}

impl Slots {
    pub fn new(registry: Arc<Registry>, cpu_bound: SlotPool, io_bound: SlotPool, max_parked: usize) -> Arc<Self> {
        let inner = Inner::new(cpu_bound, io_bound, max_parked);
        inner.gauge();
        let (inner, drain) = (Mutex::new(inner), DrainRequest::default());
        let (queued, admitted) = (WaitingCalls::default(), WaitingCalls::default());
        Arc::new(Self { registry, inner, freed: Notify::new(), queued, admitted, drain })
    }

    fn waiting(&self, origin: Origin) -> &WaitingCalls {
        match origin {
            Origin::Queue => &self.queued,
            Origin::LocalDispatch => &self.admitted,
        }
    }

    /// An unknown tool counts as CPU-bound: its call fails quickly.
    fn kind(&self, tool: &str) -> Kind {
        if self.registry.is_io_bound(tool) { Kind::IoBound } else { Kind::CpuBound }
    }

    /// What to claim, excluding the tools that are left to other runners. `None` if no slot is free
    /// for any call.
    pub fn next_claim(&self, tools_of_peers: Vec<String>) -> Option<ClaimSpec> {
        // Without I/O-bound tools, a claim for their calls alone would find none.
        let some_wait = self.registry.has_io_bound();
        let mut inner = self.inner.lock();
        // A tool's kind may have become known since it was excluded.
        inner.excluded.retain(|tool, kind| self.kind(tool) == *kind);
        inner.next_claim(some_wait, tools_of_peers)
    }

    /// The tools of which only calls that others wait for are taken now: those that can call
    /// others, while their calls have half of the places to wait.
    pub fn awaited_only(&self) -> Vec<String> {
        if !self.is_short_of_places() {
            return Vec::new();
        }
        let mut callers = self.registry.callers();
        callers.sort_unstable();
        callers.truncate(MAX_EXCEPT);
        callers
    }

    /// Whether half of the places to wait are used up, if each running call of a tool that can call
    /// others takes one.
    pub fn is_short_of_places(&self) -> bool {
        let inner = self.inner.lock();
        let half = inner.max_parked / 2;
        let of_callers = |pool: &SlotPool| pool.taken_by_any(|tool| self.registry.is_caller(tool));
        // The first condition is cheaper, and mostly false.
        inner.parked + inner.taken() >= half
            && inner.parked + of_callers(&inner.cpu_bound) + of_callers(&inner.io_bound) >= half
    }

    /// Whether calls of this tool can call others.
    pub fn is_caller(&self, tool: &str) -> bool {
        self.registry.is_caller(tool)
    }

    /// How many calls have a slot.
    pub fn taken(&self) -> usize {
        self.inner.lock().taken()
    }

    /// How many calls wait for others without a slot, at most.
    pub fn parked(&self) -> usize {
        self.inner.lock().parked
    }

    /// The slots as they are now.
    pub fn counts(&self) -> RunnerSlots {
        self.inner.lock().counts()
    }

    /// Takes a slot for a call of this tool. `None` if its kind is full.
    pub fn take(self: &Arc<Self>, tool: &str, origin: Origin) -> Option<Slot> {
        self.take_if(self.kind(tool), tool, origin, |_| true)
    }

    /// The same for a new call, which does not overtake those of the same origin that wait.
    pub fn take_in_turn(self: &Arc<Self>, tool: &str, origin: Origin) -> Option<Slot> {
        if self.waiting(origin).has(tool) { None } else { self.take(tool, origin) }
    }

    /// Takes the slot of a worker for a run of this tool that nobody waits for. `None` unless
    /// another one stays free.
    pub fn take_spare(self: &Arc<Self>, tool: &str) -> Option<Slot> {
        let leaves_another = |inner: &Inner| inner.cpu_bound.taken() + 1 < inner.cpu_bound.max_calls();
        self.take_if(Kind::CpuBound, tool, Origin::Queue, leaves_another)
    }

    fn take_if(
        self: &Arc<Self>,
        kind: Kind,
        tool: &str,
        origin: Origin,
        may_take: impl FnOnce(&Inner) -> bool,
    ) -> Option<Slot> {
        let mut inner = self.inner.lock();
        if !may_take(&inner) || !inner.take(kind, tool, origin) {
            return None;
        }
        inner.gauge();
        drop(inner);
        Some(Slot::new(self.clone(), kind, tool))
    }

    /// How many admitted calls are expected to find a slot within this time, at the recent rate: in
    /// half of the slots while queued calls of the tool wait. `None` for I/O-bound calls, and
    /// before the first other call has ended: there is no rate.
    pub fn expected_free_within(&self, tool: &str, time: Duration) -> Option<usize> {
        if self.kind(tool) == Kind::IoBound {
            return None;
        }
        let inner = self.inner.lock();
        let (each, pool) = (inner.average_hold.as_micros(), &inner.cpu_bound);
        let slots = if inner.backlog.may_hold(tool) { pool.max_calls().div_ceil(2) } else { pool.max_calls() };
        (each > 0).then(|| (time.as_micros() * slots as u128 / each) as usize)
    }

    /// How long the last of so many waiting calls is expected to wait for a slot, at the recent
    /// rate. Zero before the first CPU-bound call has ended.
    pub fn expected_wait(&self, waiting: usize) -> Duration {
        let inner = self.inner.lock();
        inner.average_hold * waiting as u32 / inner.cpu_bound.max_calls() as u32
    }

    /// Waits for a slot for a call of this tool.
    pub async fn wait(self: &Arc<Self>, tool: &str, origin: Origin) -> Slot {
        let mut waiting = self.waiting(origin).join(tool);
        loop {
            if waiting.is_first()
                && let Some(slot) = self.take(tool, origin)
            {
                waiting.is_served = true;
                drop(waiting);
                if self.has_room(tool) {
                    self.queued.wake_one_of(tool);
                    self.admitted.wake_one_of(tool);
                }
                return slot;
            }
            waiting.freed.notified().await;
        }
    }

    /// Records which queued calls wait for slots.
    pub fn set_backlog(&self, backlog: Backlog) {
        let mut inner = self.inner.lock();
        if inner.backlog == backlog {
            return;
        }
        inner.backlog = backlog;
        drop(inner);
        // What was left to queued calls of a tool may be for everyone again.
        self.admitted.wake();
    }

    /// Whether a call of this tool may find a slot.
    fn has_room(&self, tool: &str) -> bool {
        let kind = self.kind(tool);
        let mut inner = self.inner.lock();
        inner.pool(kind).has_room(tool)
    }

    /// Records that a call of this tool found no slot.
    pub fn exclude(&self, tool: &str) {
        let kind = self.kind(tool);
        self.inner.lock().exclude(kind, tool);
    }

    fn free(&self) {
        self.freed.notify_one();
        self.queued.wake();
        self.admitted.wake();
    }
}

impl Inner {
    fn new(cpu_bound: SlotPool, io_bound: SlotPool, max_parked: usize) -> Self {
        Self {
            cpu_bound,
            io_bound,
            excluded: HashMap::new(),
            claim_limit: 1,
            parked: 0,
            max_parked,
            blocked: 0,
            average_hold: Duration::ZERO,
            backlog: Backlog::none(),
            gauges: SlotGauges::new(),
        }
    }

    fn taken(&self) -> usize {
        self.cpu_bound.taken() + self.io_bound.taken()
    }

    fn pool(&mut self, kind: Kind) -> &mut SlotPool {
        match kind {
            Kind::CpuBound => &mut self.cpu_bound,
            Kind::IoBound => &mut self.io_bound,
        }
    }

    fn next_claim(&self, some_wait: bool, tools_of_peers: Vec<String>) -> Option<ClaimSpec> {
        let (limit, asked, full) = match (self.cpu_bound.next_claim(), self.io_bound.next_claim()) {
            (None, None) => return None,
            (None, Some(_)) if !some_wait => return None,
            (Some(one), Some(other)) => {
                let mut except = one.except_tools;
                except.extend(other.except_tools);
                (one.limit.min(other.limit), except, None)
            }
            (Some(spec), None) => (spec.limit.min(self.claim_limit), spec.except_tools, Some(&self.io_bound)),
            (None, Some(spec)) => (spec.limit.min(self.claim_limit), spec.except_tools, Some(&self.cpu_bound)),
        };
        // First, so that truncation does not remove them.
        let mut except = tools_of_peers;
        except.extend(asked);
        if let Some(full) = full {
            except.extend(full.running().map(str::to_owned));
            except.extend(self.excluded.keys().cloned());
            except.sort_unstable();
            except.dedup();
            if except.len() > MAX_EXCEPT {
                return None;
            }
        }
        except.truncate(MAX_EXCEPT);
        Some(ClaimSpec { limit, except_tools: except })
    }

    fn counts(&self) -> RunnerSlots {
        let of = |pool: &SlotPool| SlotCount { used: pool.taken() as u32, free: pool.free() as u32 };
        RunnerSlots { worker: of(&self.cpu_bound), waiting: of(&self.io_bound) }
    }

    /// Shows the slots in the metrics.
    fn gauge(&self) {
        self.gauges.set(self.counts());
    }

    fn take(&mut self, kind: Kind, tool: &str, origin: Origin) -> bool {
        let other_is_full = match kind {
            Kind::CpuBound => self.io_bound.is_full(),
            Kind::IoBound => self.cpu_bound.is_full(),
        };
        let is_overtaking = origin == Origin::LocalDispatch && self.backlog.may_hold(tool);
        let pool = self.pool(kind);
        if !(if is_overtaking { pool.take_overtaking(tool) } else { pool.take(tool) }) {
            return false;
        }
        if other_is_full {
            self.claim_limit = (self.claim_limit + 1).min(100);
        }
        true
    }

    fn exclude(&mut self, kind: Kind, tool: &str) {
        self.excluded.insert(tool.to_owned(), kind);
        self.claim_limit = 1;
    }

    fn leave(&mut self, kind: Kind, tool: &str) {
        self.pool(kind).leave(tool);
        self.excluded.retain(|_, of| *of != kind);
    }
}

#[cfg(test)]
mod tests;
