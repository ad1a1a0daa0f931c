//! The slot of one call: whether the call waits for others, and how long it had the slot.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Kind, Slots};

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

impl Slot {
    pub(super) fn new(slots: Arc<Slots>, kind: Kind, tool: &str) -> Self {
        Self { slots, kind, tool: tool.to_owned(), since: Instant::now(), waiting: Waiting::No }
    }

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
