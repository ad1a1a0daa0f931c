//! What the keeper does: it waits for the end of its child, and ends it when the caller is gone.

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use super::wait::{Awaited, wait_for};

/// Gives the code with which the helper ends.
pub fn keep(child: Pid, socket: i32) -> i32 {
    // The streams belong to the program: their end must be its end.
    let _ = release_streams();
    let held = rustix::process::Pid::from_raw(child.as_raw()).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let Some(Ok(held)) = held else { return end(child) };
    while matches!(wait_for(&held, socket, None), Awaited::Time) {}
    end(child)
}

/// When it returns, every process of the jail has ended: the first one is the last to go.
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

/// Standard input, output and error lead nowhere from now on.
pub fn release_streams() -> std::io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&nowhere)?;
    nix::unistd::dup2_stdout(&nowhere)?;
    nix::unistd::dup2_stderr(&nowhere)?;
    Ok(())
}
