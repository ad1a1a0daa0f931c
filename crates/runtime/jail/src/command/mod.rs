//! A program in a jail. It sees only the files that it is shown and writes only to the folders that
//! it was given. It has no network unless that is granted, no privileges, and sees no other
//! processes. Its descendants are killed when it exits.
//!
//! Two processes are between the caller and the program. The caller starts a [`Helper`] by exec,
//! which calls [`jailed_command`] before anything else. It becomes the keeper, outside of the jail.
//! Its child, the first process of a PID namespace, applies the restrictions, starts the program
//! and reaps orphans; when it exits, the kernel kills everything in the namespace. Both exit when
//! the caller's end of the socket closes, so nothing outlives the caller, even if it is killed.

mod captured;
mod command_spec;
mod filesystem_view;
mod helper_message;
#[cfg(target_os = "linux")]
mod inside;
mod jail;
mod running;

use std::io;

pub use captured::Captured;
pub use command_spec::{CommandLimits, CommandSpec};
pub use filesystem_view::{Bind, FilesystemView, make_folder};
pub use helper_message::ExitReason;
pub use jail::{Helper, Jail};
pub use running::{Finished, LiveProcess, LiveProgram};

/// Why a program did not run.
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

/// The search path for programs in a jail.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The socket by which the helper gets its command and reports the outcome.
const SOCKET_FD: i32 = 3;

/// Runs a helper. Call it first in `main`, while there is one thread, in a process that a [`Jail`]
/// started.
pub fn jailed_command() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    return inside::run(SOCKET_FD);
    #[cfg(not(target_os = "linux"))]
    std::process::ExitCode::FAILURE
}
