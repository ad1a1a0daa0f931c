//! Waiting for a process and for the caller at once.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::libc;

/// What happened first.
pub enum Awaited {
    /// The process ended.
    Process,
    /// The caller let go of the socket, or ended.
    Caller,
    /// The time passed.
    Time,
    /// Waiting does not work.
    Nothing,
}

/// Waits for the end of the process, or of the caller on the other side of `socket`, for so long at most.
pub fn wait_for(process: &OwnedFd, socket: i32, most: Option<Duration>) -> Awaited {
    let poll = |fd, events| libc::pollfd { fd, events, revents: 0 };
    // The caller has nothing more to say: whatever comes of the socket is its end.
    let mut awaited = [poll(process.as_raw_fd(), libc::POLLIN), poll(socket, libc::POLLIN | libc::POLLRDHUP)];
    let most = most.map_or(-1, |most| i32::try_from(most.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: the kernel reads and writes the two entries that are there.
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
