//! The messages of the helper, one line of JSON each, and the exit reasons of a program.

use serde::{Deserialize, Serialize};

/// One line from the helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperMessage {
    /// A required protection is not available.
    Refused(String),
    /// The protections are in force; the program cannot be started.
    NoProgram(String),
    /// The program has started.
    Started,
    Ended(ExitReason),
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal.
    Signalled(i32),
    /// It was killed: its time limit was reached.
    OutOfTime,
    /// It was killed: its CPU time limit was reached.
    OutOfProcessorTime,
    /// It or one of its processes was killed: the memory limit was reached.
    OutOfMemory,
    /// It was killed: it wrote more than the output limit.
    TooMuchOutput,
}
