//! When each call of an open loop falls due.

use std::time::Duration;

/// A steady rate. Each time is worked out from the call's number, so that nothing adds up over a long run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Due {
    per_second: f64,
}

impl Due {
    /// A rate above 0.
    pub fn at(per_second: f64) -> Self {
        Self { per_second }
    }

    /// When call `number` (from 0) is due, from the beginning on.
    pub fn of(self, number: u64) -> Duration {
        Duration::try_from_secs_f64(number as f64 / self.per_second).unwrap_or(Duration::MAX)
    }

    /// How many calls are due before `end`, that moment not included.
    pub fn before(self, end: Duration) -> u64 {
        let mut count = (end.as_secs_f64() * self.per_second).ceil() as u64;
        // Rounding may be off by one to either side; `of` is what holds.
        while count > 0 && self.of(count - 1) >= end {
            count -= 1;
        }
        while self.of(count) < end {
            count += 1;
        }
        count
    }
}
