//! An attempt. The test reads the list of them from the program.

use std::io;

use crate::expected::Expected;

/// The result of the attempt, if the process is still running.
pub type AttemptResult = Result<i64, io::Error>;

pub struct Attempt {
    pub name: &'static str,
    pub expected: Expected,
    pub how: How,
}

pub enum How {
    /// A system call with these arguments.
    Call(i64, [usize; 6]),
    Function(fn() -> AttemptResult),
}

impl Attempt {
    pub fn run(&self) -> AttemptResult {
        match self.how {
            How::Call(number, arguments) => call(number, arguments),
            How::Function(function) => function(),
        }
    }
}

pub fn call(number: i64, with: [usize; 6]) -> AttemptResult {
    // SAFETY: none: this is an attack, and the process may crash.
    #[allow(unsafe_code)]
    let result = unsafe { nix::libc::syscall(number, with[0], with[1], with[2], with[3], with[4], with[5]) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
