//! The book-keeping of a run: what happened when, without a clock of its own.

use std::collections::HashMap;
use std::time::Duration;

use crate::measured::Measured;

/// How many different sentences of failure are told apart; a target that puts an id into each must not fill the memory.
const MOST_SENTENCES: usize = 32;
/// What the others are counted as.
const FURTHER: &str = "other failures";

/// Takes down each call and works out what the window showed. All times count from the beginning of the run.
#[derive(Debug)]
pub struct Record {
    from: Duration,
    to: Duration,
    /// When each call that is under way was due.
    under_way: HashMap<u64, Duration>,
    measured: Measured,
}

impl Record {
    /// For a window that opens after the warm-up.
    pub fn new(warm_up: Duration, duration: Duration) -> Self {
        let to = warm_up.saturating_add(duration);
        Self { from: warm_up, to, under_way: HashMap::new(), measured: Measured::default() }
    }

    /// When the window ends.
    pub fn end(&self) -> Duration {
        self.to
    }

    /// Somebody ends the run: the window ends here, and what falls due later is no part of it.
    pub fn stop(&mut self, now: Duration) {
        if now < self.to {
            self.to = now;
            self.measured.is_stopped = true;
        }
    }

    /// Call `number` goes out; it was due then.
    pub fn sent(&mut self, number: u64, due: Duration) {
        self.under_way.insert(number, due);
    }

    /// Call `number` came back.
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

    /// A call that was due then was never sent. It had waited until the window's end, at least.
    pub fn unsent(&mut self, due: Duration) {
        if self.is_in_window(due) {
            self.measured.unsent += 1;
            self.measured.latency.record(self.to.saturating_sub(due));
        }
    }

    /// Nobody waits any longer. What is still under way had waited until now, at least.
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
