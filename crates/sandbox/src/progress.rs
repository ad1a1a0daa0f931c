//! The progress that a call reports, limited on this side as well.

use std::time::Instant;

use crate::HostOps;
use crate::protocol::{MAX_PROGRESS_BYTES, PROGRESS_INTERVAL, ProgressUpdate, decode};

/// Words beyond what the time allows: clocks of two processes are not read at the same moment.
const SLACK: u32 = 20;
/// Bytes of JSON that the longest word can take, every character escaped.
const MAX_PAYLOAD_BYTES: usize = 6 * MAX_PROGRESS_BYTES + 200;

pub struct ProgressReceiver {
    begun: Instant,
    words: u32,
}

impl ProgressReceiver {
    /// Before the worker gets the call, so that its own clock starts later.
    pub fn begin() -> Self {
        Self { begun: Instant::now(), words: 0 }
    }

    /// Hands a word on. The worker keeps to the bounds itself; one that does not is none of ours.
    pub fn take(&mut self, payload: &[u8], listener: &dyn HostOps) -> Result<(), String> {
        self.words = self.words.saturating_add(1);
        let allowed = self.begun.elapsed().as_millis() / PROGRESS_INTERVAL.as_millis() + u128::from(SLACK);
        if u128::from(self.words) > allowed {
            return Err("it tells of its progress more often than a call may".into());
        }
        let word = if payload.len() <= MAX_PAYLOAD_BYTES { decode::<ProgressUpdate>(payload).ok() } else { None };
        let word = word.ok_or("a word about its progress that cannot be read")?;
        if word.message.len() > MAX_PROGRESS_BYTES || word.fraction.is_some_and(|part| !(0.0..=1.0).contains(&part)) {
            return Err("a word about its progress that no worker says".into());
        }
        listener.progress(word.fraction, &word.message);
        Ok(())
    }
}
