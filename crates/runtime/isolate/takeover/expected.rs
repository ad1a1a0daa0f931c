//! The expected outcome of an attempt, shared by the program and the test.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expected {
    /// The process is killed, and the call reports a forbidden system call.
    Killed,
    /// The kernel refuses, with one of these errors.
    Refused(Cow<'static, [i32]>),
    /// It succeeds with exactly this value.
    Returns(i64),
    /// It succeeds with at most this value, or is refused.
    AtMost(i64),
    /// The call reaches its time limit.
    TimesOut,
    /// The call ends because the process broke the protocol.
    Breach,
    /// The call ends because the process ended.
    Exits,
}
