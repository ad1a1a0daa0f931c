//! Waits for a process and for the caller at the same time.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::libc;

/// What happened first.
pub enum Awaited {
    /// The process exited.
    Process,
    /// The caller closed the socket or exited.
    Caller,
    /// The time passed.
    Time,
    /// Waiting failed.
    Nothing,
}

/// Waits until the process exits or the caller at the other end of `socket` is gone, for at most
/// this long.
pub fn wait_for(process: &OwnedFd, socket: i32, most: Option<Duration>) -> Awaited {
    let poll = |fd, events| libc::pollfd { fd, events, revents: 0 };
    // The caller sends nothing more, so any event on the socket means that it is gone.
    let mut awaited = [poll(process.as_raw_fd(), libc::POLLIN), poll(socket, libc::POLLIN | libc::POLLRDHUP)];
    let most = most.map_or(-1, |most| i32::try_from(most.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: the kernel reads and writes the two entries of the array.
    #[allow(unsafe_code)]
    let found = unsafe { libc::poll(awaited.as_mut_ptr(), 2, most) };
    match found {
        0 => Awaited::Time,
        -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => Awaited::Time,
        -1 => Awaited::Nothing,
        _ if awaited[1].revents != 0 => Awaited::Caller,
        _ => Awaited::Process,
    }
}
