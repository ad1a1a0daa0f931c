//! How many calls can run, in total and for each tool.
//!
//! The last slots are a reserve for tools with no call running. So another tool can run, no matter
//! how many calls a few tools have queued or how long those run. The reserve depends on tools and
//! not on durations: a duration does not show whether a call computes or waits, and a burst takes
//! its slots before a duration is known.

use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct SlotPool {
    max_calls: usize,
    max_per_tool: usize,
    /// Slots that only the first call of a tool can take.
    reserve: usize,
    total: usize,
    by_tool: HashMap<String, usize>,
}

/// What to claim. No cap is exceeded, whichever tools the returned calls are of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClaimSpec {
    pub limit: u32,
    pub except_tools: Vec<String>,
}

impl SlotPool {
    pub fn new(max_calls: usize, max_per_tool: usize) -> Self {
        let max_calls = max_calls.max(1);
        let max_per_tool = max_per_tool.clamp(1, max_calls);
        // If one tool can have more than the remaining slots, the reserve is smaller.
        let reserve = (max_calls / 4).max(2).min(max_calls / 2).min(max_calls - max_per_tool);
        Self { max_calls, max_per_tool, reserve, total: 0, by_tool: HashMap::new() }
    }

    /// `None` if no slot is free.
    pub fn next_claim(&self) -> Option<ClaimSpec> {
        let free = self.free();
        if free == 0 {
            return None;
        }
        let shared = free.saturating_sub(self.reserve);
        if shared == 0 {
            // One at a time: the next of a batch could be of the same tool.
            return Some(ClaimSpec { limit: 1, except_tools: self.by_tool.keys().take(1000).cloned().collect() });
        }
        // All calls of a batch may be of the one tool that has the fewest free slots.
        let least =
            self.by_tool.values().map(|running| self.max_per_tool.saturating_sub(*running)).filter(|left| *left > 0);
        let limit = least.min().unwrap_or(self.max_per_tool).min(shared).min(100);
        let full = self.by_tool.iter().filter(|(_, running)| **running >= self.max_per_tool);
        Some(ClaimSpec { limit: limit as u32, except_tools: full.map(|(tool, _)| tool.clone()).take(1000).collect() })
    }

    /// Whether a call of this tool may find a slot.
    pub fn has_room(&self, tool: &str) -> bool {
        self.free() > 0 && self.taken_by(tool) < self.max_per_tool
    }

    /// Takes a slot for a call of this tool. False if there is none.
    pub fn take(&mut self, tool: &str) -> bool {
        let running = self.taken_by(tool);
        let free = self.free();
        // The reserve also applies to calls that were not claimed.
        if free == 0 || running >= self.max_per_tool || (running > 0 && free <= self.reserve) {
            return false;
        }
        self.total += 1;
        self.by_tool.insert(tool.to_owned(), running + 1);
        true
    }

    /// The same for a call that overtakes queued ones: half of the slots that its tool can have are
    /// left to those.
    pub fn take_overtaking(&mut self, tool: &str) -> bool {
        self.taken_by(tool) < self.max_per_tool.div_ceil(2) && self.take(tool)
    }

    /// Takes a slot even if none is free, for a call that gave its own to others.
    pub fn retake(&mut self, tool: &str) {
        self.total += 1;
        *self.by_tool.entry(tool.to_owned()).or_default() += 1;
    }

    pub fn leave(&mut self, tool: &str) {
        self.total -= 1;
        if let Some(running) = self.by_tool.get_mut(tool) {
            *running -= 1;
            if *running == 0 {
                self.by_tool.remove(tool);
            }
        }
    }

    pub fn max_calls(&self) -> usize {
        self.max_calls
    }

    pub fn taken(&self) -> usize {
        self.total
    }

    pub fn free(&self) -> usize {
        self.max_calls.saturating_sub(self.total)
    }

    pub fn is_full(&self) -> bool {
        self.total >= self.max_calls
    }

    fn taken_by(&self, tool: &str) -> usize {
        self.by_tool.get(tool).copied().unwrap_or_default()
    }

    /// How many calls of the tools that match have a slot.
    pub fn taken_by_any(&self, is_counted: impl Fn(&str) -> bool) -> usize {
        self.by_tool.iter().filter(|(tool, _)| is_counted(tool)).map(|(_, running)| running).sum()
    }

    /// The tools with a running call.
    pub fn running(&self) -> impl Iterator<Item = &str> {
        self.by_tool.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// No cap is exceeded, whichever calls the queue returns within the claim's limits.
        #[test]
        fn caps_are_never_exceeded(
            max in 1_usize..20,
            per_tool in 1_usize..20,
            steps in proptest::collection::vec((0_u8..4, 0_u8..3), 1..200),
        ) {
            let mut pool = SlotPool::new(max, per_tool);
            let mut running: Vec<String> = Vec::new();
            for (tool, step) in steps {
                let tool = format!("tool{tool}");
                if step == 0 {
                    if let Some(at) = running.iter().position(|one| *one == tool) {
                        pool.leave(&running.remove(at));
                    }
                } else if let Some(spec) = pool.next_claim()
                    && !spec.except_tools.contains(&tool)
                {
                    let takes_reserve = running.len() + spec.limit as usize > max - pool.reserve;
                    prop_assert!(!takes_reserve || (spec.limit == 1 && !running.contains(&tool)));
                    for _ in 0..spec.limit {
                        prop_assert!(pool.take(&tool));
                        running.push(tool.clone());
                    }
                }
                prop_assert!(running.len() <= max);
                prop_assert_eq!(running.len(), pool.taken());
                for name in &running {
                    let of_tool = running.iter().filter(|one| *one == name).count();
                    prop_assert!(of_tool <= per_tool.min(max));
                }
            }
        }

        /// Also for calls that were not claimed but taken while their requests were written.
        #[test]
        fn local_dispatch_respects_the_reserve(max in 4_usize..80, per_tool in 1_usize..80, order in any::<u128>()) {
            prop_assume!(per_tool + 2 <= max);
            let mut pool = SlotPool::new(max, per_tool);
            for step in 0..200 {
                pool.take(if (order >> (step % 128)) & 1 == 0 { "one" } else { "other" });
            }
            prop_assert!(pool.take("third"));
        }

        /// However many calls overtake the queue, some of its calls of the same tool find a slot.
        #[test]
        fn overtaking_calls_leave_slots_to_queued_ones(max in 2_usize..80, per_tool in 2_usize..80) {
            let mut pool = SlotPool::new(max, per_tool);
            let overtaking = (0..200).filter(|_| pool.take_overtaking("one")).count();
            prop_assert_eq!(overtaking, per_tool.min(max).div_ceil(2));
            let queued = (0..200).filter(|_| pool.take("one")).count();
            prop_assert_eq!(overtaking + queued, per_tool.min(max));
        }

        /// While a slot is free, something can be claimed.
        #[test]
        fn a_free_slot_can_always_be_claimed(max in 1_usize..20, per_tool in 1_usize..20, taken in 0_usize..20) {
            let mut pool = SlotPool::new(max, per_tool);
            for index in 0..taken.min(max) {
                pool.take(&format!("tool{index}"));
            }
            prop_assert_eq!(pool.next_claim().is_some(), taken < max);
        }

        /// Whatever two tools hold, a third one finds a slot, unless one tool can have all slots.
        #[test]
        fn two_tools_never_hold_every_slot(max in 4_usize..80, per_tool in 1_usize..80, order in any::<u128>()) {
            prop_assume!(per_tool + 2 <= max);
            let mut pool = SlotPool::new(max, per_tool);
            for step in 0..200 {
                let tool = if (order >> (step % 128)) & 1 == 0 { "one" } else { "other" };
                match pool.next_claim() {
                    Some(spec) if !spec.except_tools.iter().any(|full| full == tool) => {
                        (0..spec.limit).for_each(|_| assert!(pool.take(tool)));
                    }
                    _ => {}
                }
            }
            let third = pool.next_claim();
            prop_assert!(third.is_some_and(|spec| !spec.except_tools.contains(&"third".to_owned())));
        }
    }
}
