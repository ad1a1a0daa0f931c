//! How hard, and for how long.

use std::time::Duration;

/// The largest number of calls in flight: each is a task, and most targets hold a connection for it.
const MOST_IN_FLIGHT: usize = 100_000;
/// The highest rate; beyond it, the generator itself would be what is measured.
const MOST_PER_SECOND: f64 = 1_000_000.0;
/// A week: nothing is measured longer.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// When the next call is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As many callers, each of which sends its next call when the last one was answered. Shows what a system carries,
    /// and says little of its latency under a load that does not wait for it.
    Closed { in_flight: usize },
    /// Calls fall due at a steady rate, whatever becomes of the earlier ones, and at most `in_flight` are sent at a
    /// time. One that must wait for its turn counts from when it was due.
    Open { per_second: f64, in_flight: usize },
}

/// One run: first a warm-up that is not counted, then the window that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    pub pace: Pace,
    pub warm_up: Duration,
    pub duration: Duration,
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PlanError {
    #[error("at least one call must be in flight")]
    NoneInFlight,
    #[error("at most {MOST_IN_FLIGHT} calls can be in flight, not {0}")]
    TooManyInFlight(usize),
    #[error("the rate must be above 0 and at most {MOST_PER_SECOND} calls per second, not {0}")]
    Rate(f64),
    #[error("the duration must be above 0, and with the warm-up at most a week")]
    Duration,
    #[error("at {0} calls per second none falls due within the duration: make it longer")]
    NoneDue(f64),
}

impl Plan {
    /// Whether it can be carried out at all. [`drive`](crate::drive) does nothing with one that cannot, and says so.
    pub fn check(&self) -> Result<(), PlanError> {
        match self.in_flight() {
            0 => return Err(PlanError::NoneInFlight),
            more if more > MOST_IN_FLIGHT => return Err(PlanError::TooManyInFlight(more)),
            _ => {}
        }
        let whole = self.warm_up.checked_add(self.duration);
        if self.duration.is_zero() || whole.is_none_or(|whole| whole > LONGEST) {
            return Err(PlanError::Duration);
        }
        if let Pace::Open { per_second, .. } = self.pace {
            // A NaN is no rate either.
            if !(per_second > 0.0 && per_second <= MOST_PER_SECOND) {
                return Err(PlanError::Rate(per_second));
            }
            let due = crate::Due::at(per_second);
            if due.before(self.end()) == due.before(self.warm_up) {
                return Err(PlanError::NoneDue(per_second));
            }
        }
        Ok(())
    }

    pub fn in_flight(&self) -> usize {
        match self.pace {
            Pace::Closed { in_flight } | Pace::Open { in_flight, .. } => in_flight,
        }
    }

    /// When the window ends, from the beginning of the warm-up on.
    pub(crate) fn end(&self) -> Duration {
        self.warm_up.saturating_add(self.duration)
    }
}
