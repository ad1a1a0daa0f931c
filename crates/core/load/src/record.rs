//! The record of a run: what happened when. It has no clock of its own.

use std::collections::HashMap;
use std::time::Duration;

use crate::measured::Measured;

/// The most distinct error messages that are counted. A target that puts an id into each must not
/// fill the memory.
const MOST_SENTENCES: usize = 32;
/// All further messages are counted under this one.
const FURTHER: &str = "other failures";

/// Records each call and computes the results of the window. All times are measured from the start
/// of the run.
#[derive(Debug)]
pub struct Record {
    from: Duration,
    to: Duration,
    /// When each call in flight was due.
    under_way: HashMap<u64, Duration>,
    measured: Measured,
}

impl Record {
    /// For a window that opens after the warm-up.
    pub fn new(warm_up: Duration, duration: Duration) -> Self {
        let to = warm_up.saturating_add(duration);
        Self { from: warm_up, to, under_way: HashMap::new(), measured: Measured::default() }
    }

    /// When the window closes.
    pub fn end(&self) -> Duration {
        self.to
    }

    /// Stops the run: the window closes now, and calls that are due later do not belong to it.
    pub fn stop(&mut self, now: Duration) {
        if now < self.to {
            self.to = now;
            self.measured.is_stopped = true;
        }
    }

    /// Call `number` is sent. It was due at `due`.
    pub fn sent(&mut self, number: u64, due: Duration) {
        self.under_way.insert(number, due);
    }

    /// Call `number` has finished.
    pub fn ended(&mut self, number: u64, now: Duration, how: Result<(), String>) {
        let Some(due) = self.under_way.remove(&number) else { return };
        if how.is_ok() && self.is_in_window(now) {
            self.measured.calls += 1;
        }
        if self.is_in_window(due) {
            match how {
                Ok(()) => self.measured.latency.record(now.saturating_sub(due)),
                Err(sentence) => self.failed(sentence),
            }
        }
    }

    /// A call that was due at `due` was not sent. It waited at least until the window closed.
    pub fn unsent(&mut self, due: Duration) {
        if self.is_in_window(due) {
            self.measured.unsent += 1;
            self.measured.latency.record(self.to.saturating_sub(due));
        }
    }

    /// Stops waiting. Calls still in flight waited at least until now.
    pub fn close(mut self, now: Duration) -> Measured {
        for due in std::mem::take(&mut self.under_way).into_values() {
            if self.is_in_window(due) {
                self.measured.unanswered += 1;
                self.measured.latency.record(now.saturating_sub(due));
            }
        }
        self.measured.took = self.to.saturating_sub(self.from);
        self.measured
    }

    fn is_in_window(&self, moment: Duration) -> bool {
        (self.from..self.to).contains(&moment)
    }

    fn failed(&mut self, sentence: String) {
        let failures = &mut self.measured.failures;
        let sentence = if failures.len() < MOST_SENTENCES || failures.contains_key(&sentence) {
            sentence
        } else {
            FURTHER.to_owned()
        };
        *failures.entry(sentence).or_default() += 1;
    }
}
