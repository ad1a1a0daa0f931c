//! The slots in which calls run. A CPU-bound call has a worker process. An I/O-bound call only
//! waits and has none. Each kind has its own pool, so a thousand waiting calls do not keep workers
//! idle.
//!
//! The kind of a queued call is unknown before it is claimed. While one kind is full, claims
//! exclude the tools of that kind that are known to have queued calls. A call of an unknown tool is
//! released, and its kind is known from then on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::coordination::slot_pool::{ClaimSpec, SlotPool};
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
    /// Like `freed`, for calls that were claimed already.
    freed_for_claimed: Notify,
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
    /// The recent duration of CPU-bound calls in their slots; zero before the first.
    average_hold: Duration,
}

/// One call's slot, until it is dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    kind: Kind,
    tool: String,
    since: Instant,
}

/// The newest call's weight in `average_hold` is one divided by this.
const NEWEST: u32 = 8;

impl Slots {
    pub fn new(registry: Arc<Registry>, cpu_bound: SlotPool, io_bound: SlotPool) -> Arc<Self> {
        let inner =
            Inner { cpu_bound, io_bound, excluded: HashMap::new(), claim_limit: 1, average_hold: Duration::ZERO };
        inner.gauge();
        Arc::new(Self { registry, inner: Mutex::new(inner), freed: Notify::new(), freed_for_claimed: Notify::new() })
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

    /// How many calls have a slot.
    pub fn taken(&self) -> usize {
        let inner = self.inner.lock();
        inner.cpu_bound.taken() + inner.io_bound.taken()
    }

    /// Takes a slot for a call of this tool. `None` if its kind is full.
    pub fn take(self: &Arc<Self>, tool: &str) -> Option<Slot> {
        let kind = self.kind(tool);
        let mut inner = self.inner.lock();
        let is_taken = inner.take(kind, tool);
        inner.gauge();
        drop(inner);
        is_taken.then(|| Slot { slots: self.clone(), kind, tool: tool.to_owned(), since: Instant::now() })
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

    /// Waits for a slot for a call of this tool.
    pub async fn wait(self: &Arc<Self>, tool: &str) -> Slot {
        loop {
            let freed = self.freed_for_claimed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if let Some(slot) = self.take(tool) {
                return slot;
            }
            freed.await;
        }
    }

    /// Records that a call of this tool found no slot.
    pub fn exclude(&self, tool: &str) {
        let kind = self.kind(tool);
        self.inner.lock().exclude(kind, tool);
    }

    fn free(&self) {
        self.freed.notify_one();
        self.freed_for_claimed.notify_waiters();
    }
}

impl Inner {
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

    /// Shows the slots in the metrics.
    fn gauge(&self) {
        let (cpu, io) = (&self.cpu_bound, &self.io_bound);
        gauge!("rcrt_runner_slots", "kind" => "worker", "state" => "used").set(cpu.taken() as f64);
        gauge!("rcrt_runner_slots", "kind" => "worker", "state" => "free").set((cpu.max_calls() - cpu.taken()) as f64);
        gauge!("rcrt_runner_slots", "kind" => "waiting", "state" => "used").set(io.taken() as f64);
        gauge!("rcrt_runner_slots", "kind" => "waiting", "state" => "free").set((io.max_calls() - io.taken()) as f64);
    }

    fn take(&mut self, kind: Kind, tool: &str) -> bool {
        let other_is_full = match kind {
            Kind::CpuBound => self.io_bound.is_full(),
            Kind::IoBound => self.cpu_bound.is_full(),
        };
        if !self.pool(kind).take(tool) {
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
    /// Called when the tool is known: moves an I/O-bound call from a CPU-bound slot to an I/O-bound
    /// one, if one is free.
    pub fn reclassify(&mut self) {
        if self.kind == Kind::IoBound || self.slots.kind(&self.tool) == Kind::CpuBound {
            return;
        }
        let mut inner = self.slots.inner.lock();
        if inner.io_bound.take(&self.tool) {
            inner.leave(Kind::CpuBound, &self.tool);
            self.kind = Kind::IoBound;
            drop(inner);
            self.slots.free();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
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
            let mut inner = Inner { cpu_bound, io_bound, excluded: HashMap::new(), claim_limit: 1, average_hold: Duration::ZERO };
            let mut running: Vec<(Kind, String)> = Vec::new();
            let mut released: Vec<(Kind, String)> = Vec::new();
            for (tool, begins) in steps {
                let (kind, tool) = kind_of(tool);
                if begins {
                    let taken = inner.take(kind, &tool);
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
    fn nothing_is_claimed_if_the_exclusions_of_a_full_kind_are_too_many() {
        let mut inner = Inner {
            cpu_bound: SlotPool::new(1, 1),
            io_bound: SlotPool::new(1, 1),
            excluded: HashMap::new(),
            claim_limit: 1,
            average_hold: Duration::ZERO,
        };
        let left: Vec<String> = (0..MAX_EXCEPT).map(|number| format!("left{number}")).collect();
        assert!(inner.next_claim(true, left.clone()).is_some_and(|spec| spec.except_tools == left));
        assert!(inner.take(Kind::CpuBound, "computes"));
        assert_eq!(inner.next_claim(true, left.clone()), None);
        inner.leave(Kind::CpuBound, "computes");
        assert!(inner.next_claim(true, left).is_some());
    }
}
