//! A share of one processor. A process that used more is stopped, and continued when its share has
//! caught up. This is only the arithmetic: times go in, the next action comes out.

use std::time::Duration;

/// The period over which the share is measured, approximately.
const PERIOD: Duration = Duration::from_millis(100);
/// The shortest time between two checks of a process.
const SHORTEST: Duration = Duration::from_millis(2);

/// A credit of CPU time: it grows with the share of the time that passes, and shrinks with what is
/// used.
#[derive(Debug)]
pub struct Share {
    /// 0 to 1.
    rate: f64,
    /// CPU seconds that threads can use in one second.
    processors: f64,
    /// Seconds; negative if more was used than was available.
    credit: f64,
    is_stopped: bool,
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Stop,
    Resume,
    Leave,
}

impl Share {
    pub fn new(percent: u64, processors: usize) -> Self {
        let rate = percent as f64 / 100.0;
        Self { rate, processors: processors.max(1) as f64, credit: rate * PERIOD.as_secs_f64(), is_stopped: false }
    }

    /// How long a process that starts now cannot have used up its share.
    pub fn first_wait(&self) -> Duration {
        Duration::from_secs_f64((self.credit / self.processors).max(SHORTEST.as_secs_f64()))
    }

    /// Returns the next action after `passed`, in which the process used `used`, and when to check
    /// again.
    pub fn after(&mut self, passed: Duration, used: Duration) -> (Turn, Duration) {
        let full = self.rate * PERIOD.as_secs_f64();
        self.credit = (self.credit + passed.as_secs_f64() * self.rate - used.as_secs_f64()).min(full);
        let turn = match self.is_stopped {
            false if self.credit <= 0.0 => Turn::Stop,
            true if self.credit >= full / 2.0 => Turn::Resume,
            _ => Turn::Leave,
        };
        self.is_stopped = match turn {
            Turn::Stop => true,
            Turn::Resume => false,
            Turn::Leave => self.is_stopped,
        };
        let wait = if self.is_stopped { (full / 2.0 - self.credit) / self.rate } else { self.credit / self.processors };
        (turn, Duration::from_secs_f64(wait.max(SHORTEST.as_secs_f64())))
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A process that uses all the CPU it gets, on any number of threads, gets its share in the
        /// long run, even if checks are late.
        #[test]
        fn a_busy_process_gets_its_share(percent in 1u64..=100, threads in 1usize..=8, late in proptest::collection::vec(0u64..30, 50)) {
            let mut share = Share::new(percent, threads);
            let (mut used, mut passed, mut wait) = (Duration::ZERO, Duration::ZERO, SHORTEST);
            let mut late = late.iter().cycle();
            while passed < Duration::from_mins(10) {
                let slept = wait + Duration::from_millis(*late.next().unwrap());
                let burnt = if share.is_stopped() { Duration::ZERO } else { slept * threads as u32 };
                used += burnt;
                passed += slept;
                wait = share.after(slept, burnt).1;
            }
            let got = used.as_secs_f64() / passed.as_secs_f64() * 100.0;
            // The last period may be incomplete.
            prop_assert!(got <= percent as f64 + 1.0 && got >= percent as f64 * 0.9 - 1.0, "{got} of {percent}");
        }

        /// A process that uses less than its share is never stopped.
        #[test]
        fn a_process_below_its_share_is_not_stopped(percent in 1u64..=100, steps in proptest::collection::vec(1u64..1000, 1..200)) {
            let mut share = Share::new(percent, 4);
            for step in steps {
                let passed = Duration::from_millis(step);
                let used = passed.mul_f64(percent as f64 / 100.0 * 0.99).min(PERIOD.mul_f64(percent as f64 / 100.0 * 0.9));
                prop_assert_eq!(share.after(passed, used).0, Turn::Leave);
            }
        }
    }

    #[test]
    fn credit_is_limited_to_one_period() {
        let mut share = Share::new(20, 1);
        let (turn, wait) = share.after(Duration::from_hours(1), Duration::ZERO);
        assert_eq!((turn, wait), (Turn::Leave, Duration::from_millis(20)));
        let (turn, wait) = share.after(Duration::from_millis(25), Duration::from_millis(25));
        assert_eq!(turn, Turn::Leave);
        assert!(wait <= Duration::from_millis(2), "{wait:?}");
        assert_eq!(share.after(Duration::from_millis(5), Duration::from_millis(5)).0, Turn::Stop);
    }
}
