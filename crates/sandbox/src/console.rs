//! The console lines of one call, bounded once more on this side.

use crate::protocol::{MAX_CONSOLE_BYTES, MAX_CONSOLE_LINES};
use crate::{ConsoleLine, Script, stack};

#[derive(Default)]
pub struct Console {
    pub lines: Vec<ConsoleLine>,
    pub truncated: bool,
    bytes: usize,
}

impl Console {
    pub fn add(&mut self, mut line: ConsoleLine, script: &Script) {
        self.bytes = self.bytes.saturating_add(line.message.len());
        if self.truncated || self.lines.len() >= MAX_CONSOLE_LINES || self.bytes > MAX_CONSOLE_BYTES {
            self.truncated = true;
            return;
        }
        line.message = stack::mapped(&line.message, script);
        self.lines.push(line);
    }
}
