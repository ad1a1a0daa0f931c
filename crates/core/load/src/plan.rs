//! How hard, and for how long.

use std::time::Duration;

/// The most calls in flight: each is a task, and most targets hold a connection for it.
const MOST_IN_FLIGHT: usize = 100_000;
/// The highest rate. Above it, the generator itself would be measured.
const MOST_PER_SECOND: f64 = 1_000_000.0;
/// A week, the longest run.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// When the next call is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// A fixed number of callers, each of which sends its next call when the last one has finished.
    /// Shows the highest rate of a system, but not its latency under a load that does not wait for
    /// it.
    Closed { in_flight: usize },
    /// Calls are due at a steady rate, whether or not earlier ones have finished. At most
    /// `in_flight` are in flight. The latency of a call that must wait counts from when it was due.
    Open { per_second: f64, in_flight: usize },
}

/// One run: first a warm-up that does not count, then the window that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    pub pace: Pace,
    pub warm_up: Duration,
    pub duration: Duration,
}

/// Why a plan is invalid.
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
    #[error("at {0} calls per second no call is due within the duration; make it longer")]
    NoneDue(f64),
}

impl Plan {
    /// Validates the plan. [`drive`](crate::drive) sends nothing for an invalid plan and reports
    /// the error.
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
            // This also refuses NaN.
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

    /// When the window closes, measured from the start of the warm-up.
    pub(crate) fn end(&self) -> Duration {
        self.warm_up.saturating_add(self.duration)
    }
}
