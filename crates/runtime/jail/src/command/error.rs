//! Why a program did not run.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// A required protection is not available on this machine. Nothing was run.
    #[error("{0}")]
    Refused(String),
    /// The protections are in force, but the program cannot be started.
    #[error("{0}")]
    Program(String),
    #[error("the jail's helper cannot be started: {0}")]
    Start(io::Error),
    #[error("the jail's helper exited unexpectedly: {0}")]
    Broken(String),
}
