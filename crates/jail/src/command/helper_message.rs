//! The messages of the helper, one line of JSON each, and how a program can end.

use serde::{Deserialize, Serialize};

/// One line from the helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperMessage {
    /// A wall that must stand does not.
    Refused(String),
    /// The walls stand; the program cannot be started.
    NoProgram(String),
    /// The program has started.
    Started,
    Ended(ExitReason),
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// With this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was ended, because its time was over.
    OutOfTime,
    /// It was ended, because it used up its processor time.
    OutOfProcessorTime,
    /// It, or a part of it, was ended because there was more memory in use than it may have.
    OutOfMemory,
    /// It was ended, because it wrote more than is read of anybody.
    TooMuchOutput,
}
