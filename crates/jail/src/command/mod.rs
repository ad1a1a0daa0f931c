//! A program in a jail: it sees only the files that it is shown, writes only where it may, has no network unless that is
//! granted, no privileges and no other processes around it, and everything that it started ends when it does.
//!
//! Two processes stand between the caller and the program. The caller starts a [`Helper`] by exec, which calls
//! [`jailed_command`] before anything else: it is the keeper, outside. Its child, the first process of a process
//! namespace, puts up the walls, starts the program and collects what the program leaves behind; when it ends, the
//! kernel ends everything in the namespace. Both end when the caller's end of the socket closes, so nothing outlives the
//! caller, however that ends.

mod captured;
mod command_spec;
mod error;
mod filesystem_view;
mod helper_message;
#[cfg(target_os = "linux")]
mod inside;
mod jail;
mod running;

pub use captured::Captured;
pub use command_spec::{CommandLimits, CommandSpec};
pub use error::JailError;
pub use filesystem_view::{Bind, FilesystemView};
pub use helper_message::ExitReason;
pub use jail::{Helper, Jail};
pub use running::Finished;

/// Where programs are looked for in a jail.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The socket by which the helper gets its command and reports the outcome.
const SOCKET_FD: i32 = 3;

/// The whole life of a helper. Call it first of all in `main`, while there is one thread, in a process that a [`Jail`]
/// started.
pub fn jailed_command() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    return inside::run(SOCKET_FD);
    #[cfg(not(target_os = "linux"))]
    std::process::ExitCode::FAILURE
}
