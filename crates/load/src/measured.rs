//! What a run showed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::histogram::Histogram;

/// What happened in a run's window. A call belongs to it when it was due (in a closed loop: sent) in it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Measured {
    /// Calls that were answered well while the window was open, whenever they were sent: what the rate is made of.
    pub calls: u64,
    /// The window's calls that failed, by the sentence they failed with.
    pub failures: BTreeMap<String, u64>,
    /// The window's calls that were due, and not sent before it ended: the system did not keep up.
    pub unsent: u64,
    /// The window's calls that had no answer when the run was given up, long after the window.
    pub unanswered: u64,
    /// The window's length; shorter than planned when the run was stopped.
    #[serde(rename = "took_s", serialize_with = "seconds")]
    pub took: Duration,
    /// The window's calls that were answered well, from due to answer; and with the time they had waited, as the least
    /// it can have been, those that were not sent or not answered. Failures are not in it.
    pub latency: Histogram,
    /// Somebody ended the run before its time.
    #[serde(rename = "stopped")]
    pub is_stopped: bool,
}

impl Measured {
    /// Good answers per second of the window.
    pub fn per_second(&self) -> f64 {
        if self.took.is_zero() { 0.0 } else { self.calls as f64 / self.took.as_secs_f64() }
    }

    /// The latency that a share `quantile` (0 to 1) of the window's calls did not exceed.
    pub fn quantile(&self, quantile: f64) -> Duration {
        self.latency.quantile(quantile)
    }

    /// The window's calls that were answered well, however late.
    pub fn answered(&self) -> u64 {
        self.latency.len().saturating_sub(self.unsent + self.unanswered)
    }

    /// How many calls failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// How many of the window's calls did not get a good answer in time.
    pub fn missed(&self) -> u64 {
        self.failed() + self.unsent + self.unanswered
    }
}

fn seconds<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_secs_f64())
}
