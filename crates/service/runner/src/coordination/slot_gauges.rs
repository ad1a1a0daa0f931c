//! The slots in the metrics. The series are looked up once: that costs more than setting them.

use metrics::{Gauge, gauge};
use rcrt_breadcrumb::{RunnerSlots, SlotCount};

pub(crate) struct SlotGauges {
    worker: CountGauges,
    waiting: CountGauges,
}

struct CountGauges {
    used: Gauge,
    free: Gauge,
}

impl SlotGauges {
    /// If a recorder is to show them, it must be installed before.
    pub fn new() -> Self {
        Self { worker: CountGauges::of("worker"), waiting: CountGauges::of("waiting") }
    }

    pub fn set(&self, slots: RunnerSlots) {
        self.worker.set(slots.worker);
        self.waiting.set(slots.waiting);
    }
}

impl CountGauges {
    fn of(kind: &'static str) -> Self {
        let gauge = |state: &'static str| gauge!("rcrt_runner_slots", "kind" => kind, "state" => state);
        Self { used: gauge("used"), free: gauge("free") }
    }

    fn set(&self, count: SlotCount) {
        self.used.set(count.used);
        self.free.set(count.free);
    }
}
