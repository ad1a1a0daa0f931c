//! The results of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::histogram::Histogram;

/// The results of a run's window. A call belongs to the window if it was due in it (in a closed
/// loop: sent in it).
#[derive(Debug, Clone, Default, Serialize)]
pub struct Measured {
    /// Calls that succeeded while the window was open, whenever they were sent. The rate is
    /// computed from these.
    pub calls: u64,
    /// The window's failed calls, by error message.
    pub failures: BTreeMap<String, u64>,
    /// The window's calls that were due but not sent before it closed: the system did not keep up.
    pub unsent: u64,
    /// The window's calls that had no response when the run gave up, long after the window.
    pub unanswered: u64,
    /// The window's length. Shorter than planned if the run was stopped.
    #[serde(rename = "took_s", serialize_with = "seconds")]
    pub took: Duration,
    /// The latency of the window's calls, from due to response. Calls that were not sent or got no
    /// response count with the time that they had waited, which is the least that their latency can
    /// be. Failed calls are not included.
    pub latency: Histogram,
    /// The run was stopped before its planned end.
    #[serde(rename = "stopped")]
    pub is_stopped: bool,
}

impl Measured {
    /// Successful calls per second of the window.
    pub fn per_second(&self) -> f64 {
        if self.took.is_zero() { 0.0 } else { self.calls as f64 / self.took.as_secs_f64() }
    }

    /// The latency that a share `quantile` (0 to 1) of the window's calls did not exceed.
    pub fn quantile(&self, quantile: f64) -> Duration {
        self.latency.quantile(quantile)
    }

    /// The window's calls that succeeded, however late.
    pub fn answered(&self) -> u64 {
        self.latency.len().saturating_sub(self.unsent + self.unanswered)
    }

    /// How many calls failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// How many of the window's calls failed or got no response in time.
    pub fn missed(&self) -> u64 {
        self.failed() + self.unsent + self.unanswered
    }
}

fn seconds<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_secs_f64())
}
