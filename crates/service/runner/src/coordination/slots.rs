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

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{RunnerSlots, SlotCount};
use tokio::sync::Notify;
use tokio::time::Instant;

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
    waiting: WaitingCalls,
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
    /// Whether calls of the queue wait for slots. Calls that were admitted leave some to them.
    is_queue_behind: bool,
    gauges: SlotGauges,
}

/// Where a call that needs a slot comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Queue,
    /// It was admitted before its request was written.
    LocalDispatch,
}

/// One call's slot, until it is dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    kind: Kind,
    tool: String,
    since: Instant,
    waiting: Waiting,
}

/// Whether a call waits for calls that it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    No,
    /// It has its slot, and can park.
    MayPark,
    /// Others can use its slot.
    Parked,
    /// It has its slot, and cannot park.
    Blocked,
}

/// The newest call's weight in `average_hold` is one divided by this.
const NEWEST: u32 = 8;

impl Slots {
    pub fn new(registry: Arc<Registry>, cpu_bound: SlotPool, io_bound: SlotPool, max_parked: usize) -> Arc<Self> {
        let inner = Inner::new(cpu_bound, io_bound, max_parked);
        inner.gauge();
        let (inner, drain) = (Mutex::new(inner), DrainRequest::default());
        Arc::new(Self { registry, inner, freed: Notify::new(), waiting: WaitingCalls::default(), drain })
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

    /// The same for a new call, which does not overtake those that wait.
    pub fn take_in_turn(self: &Arc<Self>, tool: &str, origin: Origin) -> Option<Slot> {
        if self.waiting.has(tool) { None } else { self.take(tool, origin) }
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
        Some(Slot { slots: self.clone(), kind, tool: tool.to_owned(), since: Instant::now(), waiting: Waiting::No })
    }

    /// How many more calls are expected to find a slot within this time, at the recent rate. `None`
    /// if there is no rate, as with I/O-bound calls.
    pub fn expected_free_within(&self, tool: &str, time: Duration) -> Option<usize> {
        if self.kind(tool) == Kind::IoBound {
            return None;
        }
        let inner = self.inner.lock();
        let each = inner.average_hold.as_micros();
        (each > 0).then(|| (time.as_micros() * inner.cpu_bound.max_calls() as u128 / each) as usize)
    }

    /// How long the last of so many waiting calls is expected to wait for a slot, at the recent
    /// rate. Zero if there is no rate.
    pub fn expected_wait(&self, waiting: usize) -> Duration {
        let inner = self.inner.lock();
        inner.average_hold * waiting as u32 / inner.cpu_bound.max_calls() as u32
    }

    /// Waits for a slot for a call of this tool.
    pub async fn wait(self: &Arc<Self>, tool: &str, origin: Origin) -> Slot {
        let mut waiting = self.waiting.join(tool);
        loop {
            if waiting.is_first()
                && let Some(slot) = self.take(tool, origin)
            {
                waiting.is_served = true;
                drop(waiting);
                if self.has_room(tool) {
                    self.waiting.wake_one_of(tool);
                }
                return slot;
            }
            waiting.freed.notified().await;
        }
    }

    /// Records whether calls of the queue wait for slots.
    pub fn set_queue_behind(&self, is_behind: bool) {
        let mut inner = self.inner.lock();
        let was_behind = std::mem::replace(&mut inner.is_queue_behind, is_behind);
        drop(inner);
        if was_behind && !is_behind {
            // What was left to the queue is for everyone again.
            self.waiting.wake();
        }
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
        self.waiting.wake();
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
            is_queue_behind: false,
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
        let is_overtaking = self.is_queue_behind && origin == Origin::LocalDispatch;
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

impl Slot {
    pub fn slots(&self) -> Arc<Slots> {
        self.slots.clone()
    }

    /// Called when the tool is known: moves an I/O-bound call from a CPU-bound slot to an I/O-bound
    /// one, if one is free.
    pub fn reclassify(&mut self) {
        if self.kind == Kind::IoBound || self.slots.kind(&self.tool) == Kind::CpuBound {
            return;
        }
        let mut inner = self.slots.inner.lock();
        if inner.io_bound.take(&self.tool) {
            inner.leave(Kind::CpuBound, &self.tool);
            inner.gauge();
            self.kind = Kind::IoBound;
            drop(inner);
            self.slots.free();
        }
    }

    /// Called before the call makes one that it will wait for. False: too many calls already wait.
    /// Half of the slots are left for what they wait for, since other calls may wait too in ways
    /// that are not known here, such as by polling for a record.
    pub fn may_wait(&mut self) -> bool {
        if self.waiting != Waiting::No {
            return true;
        }
        let mut inner = self.slots.inner.lock();
        if inner.parked < inner.max_parked {
            inner.parked += 1;
            self.waiting = Waiting::MayPark;
        } else if 2 * (inner.blocked + 1) <= inner.pool(self.kind).max_calls() {
            inner.blocked += 1;
            self.waiting = Waiting::Blocked;
        }
        self.waiting != Waiting::No
    }

    /// The call waits from now on.
    pub fn park(&mut self) {
        if self.waiting == Waiting::MayPark {
            self.waiting = Waiting::Parked;
            let mut inner = self.slots.inner.lock();
            inner.leave(self.kind, &self.tool);
            inner.gauge();
            drop(inner);
            self.slots.free();
        }
    }

    /// The call waits no longer.
    pub fn resume(&mut self) {
        let mut inner = self.slots.inner.lock();
        match std::mem::replace(&mut self.waiting, Waiting::No) {
            Waiting::No => return,
            Waiting::MayPark => inner.parked -= 1,
            Waiting::Parked => {
                inner.parked -= 1;
                inner.pool(self.kind).retake(&self.tool);
                self.since = Instant::now();
            }
            Waiting::Blocked => inner.blocked -= 1,
        }
        inner.gauge();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.resume();
        let mut inner = self.slots.inner.lock();
        inner.leave(self.kind, &self.tool);
        if self.kind == Kind::CpuBound {
            // Never zero, which would mean that no call was measured.
            let newest = self.since.elapsed().max(Duration::from_micros(NEWEST.into()));
            let before = if inner.average_hold.is_zero() { newest } else { inner.average_hold };
            inner.average_hold = (before * (NEWEST - 1) + newest) / NEWEST;
        }
        inner.gauge();
        drop(inner);
        self.slots.free();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::pin::Pin;

    use futures::FutureExt;
    use proptest::prelude::*;

    use super::*;

    fn kind_of(tool: u8) -> (Kind, String) {
        if tool.is_multiple_of(2) {
            (Kind::CpuBound, format!("computes{tool}"))
        } else {
            (Kind::IoBound, format!("waits{tool}"))
        }
    }

    proptest! {
        /// A tool whose call was released stays excluded while its kind is full, whatever happens
        /// in the slots of the other kind. It is claimed again afterwards.
        #[test]
        fn a_released_tool_is_claimed_again_when_a_slot_of_its_kind_is_free(
            max in 1_usize..5,
            steps in proptest::collection::vec((0_u8..8, any::<bool>()), 1..200),
        ) {
            let (cpu_bound, io_bound) = (SlotPool::new(max, max), SlotPool::new(max, max));
            let mut inner = Inner::new(cpu_bound, io_bound, 1);
            let mut running: Vec<(Kind, String)> = Vec::new();
            let mut released: Vec<(Kind, String)> = Vec::new();
            for (tool, begins) in steps {
                let (kind, tool) = kind_of(tool);
                if begins {
                    let taken = inner.take(kind, &tool, Origin::Queue);
                    if taken {
                        running.push((kind, tool));
                    } else {
                        inner.exclude(kind, &tool);
                        released.push((kind, tool));
                    }
                } else if let Some(at) = running.iter().position(|one| *one == (kind, tool.clone())) {
                    running.remove(at);
                    inner.leave(kind, &tool);
                    released.retain(|(of, _)| *of != kind);
                }
                let left = vec!["another's".to_owned()];
                if let Some(spec) = inner.next_claim(true, left.clone()) {
                    prop_assert!(spec.except_tools.contains(&left[0]));
                    for kind in [Kind::CpuBound, Kind::IoBound] {
                        if inner.pool(kind).is_full() {
                            prop_assert!(released.iter().all(|(of, tool)| *of != kind || spec.except_tools.contains(tool)));
                        }
                    }
                }
                prop_assert!(inner.excluded.iter().all(|(tool, kind)| released.contains(&(*kind, tool.clone()))));
            }
        }
    }

    #[test]
    fn calls_that_wait_for_others_leave_a_slot_for_them() {
        let slots = Slots::new(Registry::new(), SlotPool::new(2, 2), SlotPool::new(1, 1), 1);
        let (mut first, mut second) =
            (slots.take("a", Origin::Queue).unwrap(), slots.take("a", Origin::Queue).unwrap());
        assert!(first.may_wait() && first.may_wait());
        assert!(slots.take("b", Origin::Queue).is_none(), "it does not wait yet");
        first.park();
        let mut third = slots.take("b", Origin::Queue).unwrap();
        // It keeps its slot. Then the third would be the last that can do anything.
        assert!(second.may_wait());
        second.park();
        assert!(!third.may_wait());
        assert!(slots.take("b", Origin::Queue).is_none());
        first.resume();
        assert_eq!((slots.taken(), third.may_wait()), (3, true));
        drop((first, second));
        third.park();
        assert_eq!(slots.taken(), 0);
        drop(third);
        assert_eq!(slots.taken(), 0);
        assert!(slots.take("a", Origin::Queue).is_some_and(|mut slot| slot.may_wait()));
    }

    #[tokio::test]
    async fn waiting_calls_get_slots_in_their_order() {
        let slots = Slots::new(Registry::new(), SlotPool::new(1, 1), SlotPool::new(1, 1), 1);
        let running = slots.take("a", Origin::Queue).unwrap();
        let mut waiting: Vec<_> = (0..3).map(|_| polled(Box::pin(slots.wait("a", Origin::LocalDispatch)))).collect();
        drop(running);
        assert!(slots.take_in_turn("a", Origin::LocalDispatch).is_none(), "others wait");
        // One that gives up passes its turn on.
        drop(waiting.remove(0));
        let second = waiting.remove(0).await;
        assert!(waiting[0].as_mut().now_or_never().is_none());
        drop(second);
        drop(waiting.remove(0).await);
        assert!(slots.take_in_turn("a", Origin::LocalDispatch).is_some());
    }

    /// Polls it once, so that it waits.
    fn polled<F: Future + ?Sized>(mut waits: Pin<Box<F>>) -> Pin<Box<F>> {
        assert!(waits.as_mut().now_or_never().is_none());
        waits
    }

    #[test]
    fn nothing_is_claimed_if_the_exclusions_of_a_full_kind_are_too_many() {
        let mut inner = Inner::new(SlotPool::new(1, 1), SlotPool::new(1, 1), 1);
        let left: Vec<String> = (0..MAX_EXCEPT).map(|number| format!("left{number}")).collect();
        assert!(inner.next_claim(true, left.clone()).is_some_and(|spec| spec.except_tools == left));
        assert!(inner.take(Kind::CpuBound, "computes", Origin::Queue));
        assert_eq!(inner.next_claim(true, left.clone()), None);
        inner.leave(Kind::CpuBound, "computes");
        assert!(inner.next_claim(true, left).is_some());
    }
}
