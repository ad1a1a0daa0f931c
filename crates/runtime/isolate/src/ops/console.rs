//! Console lines are sent one by one, so that they arrive even if the call is killed. They are
//! limited here, and again by the parent.

use std::cell::Cell;

use deno_core::{OpState, op2};
use rcrt_sandbox::protocol::{Kind, MAX_CONSOLE_BYTES, MAX_CONSOLE_LINES, encode};
use rcrt_sandbox::{ConsoleLevel, ConsoleLine};

use crate::link::Link;
use crate::outcome::tells_refused_change;

/// What the running call can still write.
pub struct Console {
    lines: Cell<usize>,
    bytes: Cell<usize>,
    /// Lines that did not fit.
    omitted: Cell<u64>,
    /// An error that nothing in the tool handled shows that it changes what calls share.
    has_refused_change: Cell<bool>,
}

impl Console {
    pub fn new() -> Self {
        Self {
            lines: Cell::new(MAX_CONSOLE_LINES),
            bytes: Cell::new(MAX_CONSOLE_BYTES),
            omitted: Cell::new(0),
            has_refused_change: Cell::new(false),
        }
    }

    pub fn omitted(&self) -> u64 {
        self.omitted.get()
    }

    pub fn has_refused_change(&self) -> bool {
        self.has_refused_change.get()
    }

    /// Whether the line fits.
    fn admit(&self, bytes: usize) -> bool {
        if self.omitted.get() > 0 {
            return false;
        }
        match (self.lines.get().checked_sub(1), self.bytes.get().checked_sub(bytes)) {
            (Some(lines), Some(bytes)) => {
                self.lines.set(lines);
                self.bytes.set(bytes);
                true
            }
            _ => false,
        }
    }
}

/// Levels as in `console.js`, by number.
const LEVELS: [ConsoleLevel; 5] =
    [ConsoleLevel::Debug, ConsoleLevel::Log, ConsoleLevel::Info, ConsoleLevel::Warn, ConsoleLevel::Error];

#[op2(fast)]
pub fn op_sandbox_console(state: &mut OpState, level: u32, #[string] message: &str) {
    let link = state.borrow::<Link>();
    let console = state.borrow::<Console>();
    if !console.admit(message.len()) {
        if console.omitted.replace(console.omitted.get() + 1) == 0 {
            let _ = link.send(Kind::ConsoleFull, 0, Vec::new());
        }
        return;
    }
    let level = LEVELS.get(level as usize).copied().unwrap_or(ConsoleLevel::Log);
    if let Ok(line) = encode(&ConsoleLine { level, message: message.to_owned() }) {
        // If the socket is closed, the reading thread exits the process.
        let _ = link.send(Kind::Console, 0, line);
    }
}

/// An error that nothing in the tool handles.
#[op2(fast)]
pub fn op_sandbox_uncaught(state: &mut OpState, #[string] message: &str, #[string] cause: &str) {
    if tells_refused_change(message) || tells_refused_change(cause) {
        state.borrow::<Console>().has_refused_change.set(true);
    }
}
