//! Whether the calls of a tool version follow each other in one process, unless its author asks for
//! something else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub struct Sharing {
    last_call: Mutex<Option<Instant>>,
    /// It changes builtins, which no call may change in a process that others use.
    changes_builtins: AtomicBool,
}

impl Sharing {
    /// A call begins. Whether its process is prepared for the next call: only if the last call was
    /// not longer ago than `within`, since a tool that is called seldom gains nothing.
    pub(crate) fn begin(&self, within: Duration) -> bool {
        let now = Instant::now();
        let last = self.last_call.lock().replace(now);
        let is_frequent = last.is_some_and(|last| now.duration_since(last) < within);
        is_frequent && !self.changes_builtins.load(Ordering::Relaxed)
    }

    /// From now on each call gets its own process.
    pub(crate) fn refuse(&self) {
        self.changes_builtins.store(true, Ordering::Relaxed);
    }
}
