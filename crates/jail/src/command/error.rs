//! Why a program did not run.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// This machine does not give a wall that must stand. Nothing was run.
    #[error("{0}")]
    Refused(String),
    /// The program itself cannot be started, behind walls that stand.
    #[error("{0}")]
    Program(String),
    #[error("the jail's helper cannot be started: {0}")]
    Start(io::Error),
    #[error("the jail's helper ended before its time: {0}")]
    Broken(String),
}
