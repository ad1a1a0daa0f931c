//! What must come of an attempt, in the words of the program and of the test.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Must {
    /// The process is ended for it, and the call is told of a forbidden system call.
    Die,
    /// The kernel refuses, with one of these errors.
    Refuse(Cow<'static, [i32]>),
    /// It can be done, and comes to exactly this.
    Give(i64),
    /// It can be done, or is refused, and comes to no more than this.
    AtMost(i64),
    /// The call runs out of its time.
    TimeOut,
    /// The call ends because the process broke the protocol.
    Breach,
    /// The call ends because the process ended.
    End,
}
