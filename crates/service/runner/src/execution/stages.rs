//! How long each stage of a call took, for the response's metadata. A speculative run overlaps the
//! stages before it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::time::Instant;

/// The duration of each stage. A stage that was not reached is 0.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    /// From the write of the request, or the time of its retry, to the claim.
    queue: Duration,
    /// The store's part: the claim and the start.
    claim: Duration,
    /// Finding the tool, checking the input, getting the secrets.
    load: Duration,
    /// The tool itself.
    run: Duration,
    /// When the tool finished, or the call failed before it ran.
    ended: Option<Instant>,
}

impl Stages {
    /// `ready_at`: since when this attempt could be claimed. `asked`: when the runner sent the
    /// claim.
    pub fn claimed(ready_at: DateTime<Utc>, asked: Instant) -> Self {
        let claim = asked.elapsed();
        let since_queued = (Utc::now() - ready_at).to_std().unwrap_or_default();
        // A call may have been written while the claim was in progress.
        let claim = claim.min(since_queued);
        Self { queue: since_queued.saturating_sub(claim), claim, ..Self::uncommitted() }
    }

    /// For a call whose request is not written yet: it has not waited.
    pub fn uncommitted() -> Self {
        let none = Duration::ZERO;
        Self { queue: none, claim: none, load: none, run: none, ended: None }
    }

    /// How long the call waited, and then how long the claim took.
    pub fn before(&self) -> (Duration, Duration) {
        (self.queue, self.claim)
    }

    pub fn loaded(&mut self, took: Duration) {
        self.load = took;
        self.ended = Some(Instant::now());
    }

    pub fn started(&mut self, took: Duration) {
        self.claim += took;
    }

    pub fn ran(&mut self, took: Duration) {
        self.run = took;
        self.ended = Some(Instant::now());
    }

    /// Up to now, when the response is handed to the store. Milliseconds, to the microsecond.
    pub fn metadata(&self) -> Value {
        let ms = |time: Duration| time.as_micros() as f64 / 1000.0;
        let write = self.ended.map_or(Duration::ZERO, |ended| ended.elapsed());
        let stages = [
            ("queue_ms", self.queue),
            ("claim_ms", self.claim),
            ("load_ms", self.load),
            ("run_ms", self.run),
            ("write_ms", write),
        ];
        stages.into_iter().map(|(name, time)| (name, ms(time))).collect()
    }
}
