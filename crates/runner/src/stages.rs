//! How long each stage of a call took, for the response's metadata. A run that began before its
//! request was written overlaps the stages before it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A stage that was not reached is 0.
#[derive(Debug, Clone)]
pub(crate) struct Stages {
    /// From the request's writing, or the time of its retry, until a runner asked for it.
    queue: Duration,
    /// The store's part: giving the call out, and marking it as started.
    claim: Duration,
    /// Finding the tool, checking the input, getting the secrets.
    load: Duration,
    /// The tool itself.
    run: Duration,
    /// When the tool had ended, or the call had failed before it.
    ended: Option<Instant>,
}

impl Stages {
    /// `ready_at`: since when this attempt could be claimed. `asked`: when the runner asked for it.
    pub fn claimed(ready_at: DateTime<Utc>, asked: Instant) -> Self {
        let claim = asked.elapsed();
        let since_queued = (Utc::now() - ready_at).to_std().unwrap_or_default();
        // A call may have been written while the claim was in progress.
        let claim = claim.min(since_queued);
        Self { queue: since_queued.saturating_sub(claim), claim, ..Self::uncommitted() }
    }

    /// Of a call whose request is not written yet: it has waited for nothing.
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
        json!({
            "queue_ms": ms(self.queue),
            "claim_ms": ms(self.claim),
            "load_ms": ms(self.load),
            "run_ms": ms(self.run),
            "write_ms": ms(write),
        })
    }
}
