//! When each call of an open loop falls due.

use std::time::Duration;

/// A steady rate. Each time is computed from the call's number, so that errors do not add up over a
/// long run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Due {
    per_second: f64,
}

impl Due {
    /// A rate above 0.
    pub fn at(per_second: f64) -> Self {
        Self { per_second }
    }

    /// When call `number` (from 0) is due, measured from the start.
    pub fn of(self, number: u64) -> Duration {
        Duration::try_from_secs_f64(number as f64 / self.per_second).unwrap_or(Duration::MAX)
    }

    /// How many calls are due before `end` (exclusive).
    pub fn before(self, end: Duration) -> u64 {
        let mut count = (end.as_secs_f64() * self.per_second).ceil() as u64;
        // Rounding can be off by one in either direction; `of` is exact.
        while count > 0 && self.of(count - 1) >= end {
            count -= 1;
        }
        while self.of(count) < end {
            count += 1;
        }
        count
    }
}
