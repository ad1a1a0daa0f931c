//! How many calls may be taken, in all and of each tool.

use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct Room {
    max_calls: usize,
    max_per_tool: usize,
    total: usize,
    by_tool: HashMap<String, usize>,
}

/// What to claim: whichever tools the calls are of, no cap is passed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub limit: u32,
    pub except_tools: Vec<String>,
}

impl Room {
    pub fn new(max_calls: usize, max_per_tool: usize) -> Self {
        let max_calls = max_calls.max(1);
        Self { max_calls, max_per_tool: max_per_tool.clamp(1, max_calls), total: 0, by_tool: HashMap::new() }
    }

    /// `None` when there is no room at all.
    pub fn ask(&self) -> Option<Ask> {
        let free = self.max_calls - self.total;
        // All calls of a batch may be of the one tool that has least room left.
        let least =
            self.by_tool.values().map(|running| self.max_per_tool.saturating_sub(*running)).filter(|left| *left > 0);
        let limit = least.min().unwrap_or(self.max_per_tool).min(free).min(100);
        if limit == 0 {
            return None;
        }
        let full = self.by_tool.iter().filter(|(_, running)| **running >= self.max_per_tool);
        Some(Ask { limit: limit as u32, except_tools: full.map(|(tool, _)| tool.clone()).take(1000).collect() })
    }

    pub fn take(&mut self, tool: &str) {
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

    pub fn taken(&self) -> usize {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A queue that gives whatever it likes within what was asked never gets past a cap.
        #[test]
        fn no_cap_is_ever_passed(
            max in 1_usize..20,
            per_tool in 1_usize..20,
            steps in proptest::collection::vec((0_u8..4, 0_u8..3), 1..200),
        ) {
            let mut room = Room::new(max, per_tool);
            let mut running: Vec<String> = Vec::new();
            for (tool, step) in steps {
                let tool = format!("tool{tool}");
                if step == 0 {
                    if let Some(at) = running.iter().position(|one| *one == tool) {
                        room.leave(&running.remove(at));
                    }
                } else if let Some(ask) = room.ask()
                    && !ask.except_tools.contains(&tool)
                {
                    for _ in 0..ask.limit {
                        room.take(&tool);
                        running.push(tool.clone());
                    }
                }
                prop_assert!(running.len() <= max);
                prop_assert_eq!(running.len(), room.taken());
                for name in &running {
                    let of_tool = running.iter().filter(|one| *one == name).count();
                    prop_assert!(of_tool <= per_tool.min(max));
                }
            }
        }

        /// While any cap has room, something can be asked for.
        #[test]
        fn room_is_always_offered(max in 1_usize..20, per_tool in 1_usize..20, taken in 0_usize..20) {
            let mut room = Room::new(max, per_tool);
            for index in 0..taken.min(max) {
                room.take(&format!("tool{index}"));
            }
            prop_assert_eq!(room.ask().is_some(), taken < max);
        }
    }
}
