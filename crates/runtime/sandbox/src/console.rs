//! The console lines of one call, limited on this side as well.

use crate::protocol::{MAX_CONSOLE_BYTES, MAX_CONSOLE_LINES};
use crate::{ConsoleLine, Script, stack};

#[derive(Default)]
pub struct Console {
    pub lines: Vec<ConsoleLine>,
    pub truncated: bool,
    bytes: usize,
}

impl Console {
    /// Adds a line. An honest worker enforces the limits itself and reports omitted lines, so more
    /// lines are a breach.
    pub fn add(&mut self, mut line: ConsoleLine, script: &Script) -> Result<(), String> {
        self.bytes = self.bytes.saturating_add(line.message.len());
        if self.truncated || self.lines.len() >= MAX_CONSOLE_LINES || self.bytes > MAX_CONSOLE_BYTES {
            return Err("more console lines than a call can write".into());
        }
        line.message = stack::mapped(&line.message, script);
        self.lines.push(line);
        Ok(())
    }
}
