//! The keeper's work: it waits until its child exits, and kills it if the caller is gone.

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use super::wait::{Awaited, wait_for};

/// Returns the exit code of the helper.
pub fn keep(child: Pid, socket: i32) -> i32 {
    // The streams belong to the program: they must close when the program does.
    let _ = release_streams();
    let held = rustix::process::Pid::from_raw(child.as_raw()).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let Some(Ok(held)) = held else { return end(child) };
    while matches!(wait_for(&held, socket, None), Awaited::Time) {}
    end(child)
}

/// When it returns, every process of the jail has exited: the first one exits last.
fn end(child: Pid) -> i32 {
    let _ = kill(child, Signal::SIGKILL);
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return code,
            Ok(WaitStatus::Signaled(..)) => return 1,
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(_) => return 1,
        }
    }
}

/// Redirects standard input, output and error to `/dev/null`.
pub fn release_streams() -> std::io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    nix::unistd::dup2_stderr(&null)?;
    Ok(())
}
