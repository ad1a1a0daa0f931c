//! Whether the calls of a tool version follow each other in one process, unless its author asks for
//! something else.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// After this many processes in a row that could not be kept, preparing one is not worth its time.
const MAX_LOST: u32 = 3;
/// How many calls then get a process of their own before it is tried again.
const PAUSE: u32 = 100;

/// Whether the next call of a script gets a process that is prepared for further ones.
#[derive(Debug, Default)]
pub struct Sharing(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last_call: Option<Instant>,
    /// It changes builtins, which no call may change in a process that others use.
    changes_builtins: bool,
    /// How many prepared processes in a row could not be kept.
    lost: u32,
    /// How many calls had a process of their own since.
    paused: u32,
}

impl Sharing {
    /// A call begins. Whether its process is prepared for the next call: only if the last call was
    /// not longer ago than `within`, since a tool that is called seldom gains nothing.
    pub(crate) fn begin(&self, within: Duration) -> bool {
        let mut state = self.0.lock();
        let now = Instant::now();
        let last = state.last_call.replace(now);
        if state.changes_builtins || last.is_none_or(|last| now.duration_since(last) >= within) {
            return false;
        }
        if state.lost < MAX_LOST {
            return true;
        }
        state.paused += 1;
        if state.paused > PAUSE {
            (state.lost, state.paused) = (0, 0);
        }
        false
    }

    /// A call in a process that was prepared for others has ended.
    pub(crate) fn end(&self, is_kept: bool) {
        let mut state = self.0.lock();
        state.lost = if is_kept { 0 } else { state.lost + 1 };
    }

    /// From now on each call gets its own process: the script changes builtins.
    pub fn refuse(&self, file_name: &str) {
        tracing::debug!(file_name, "a script gets a process for each call: it changes builtins");
        self.0.lock().changes_builtins = true;
    }
}
