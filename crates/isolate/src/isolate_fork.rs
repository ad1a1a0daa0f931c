//! A process for each fresh isolate. The worker has the zygote's isolate, runs nothing in it, and
//! forks: a child gets the new isolate for the cost of the pages that it writes to. The worker
//! waits for the child's end, and then forks the next. It reads nothing from the socket and never
//! runs a tool's code.

use std::os::unix::net::UnixStream;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use sandbox::protocol::Protection;

use crate::WorkerError;
use crate::jail;

/// Exit status of a child whose isolate is spent.
pub const SPENT: i32 = 0;
/// Exit status of a child whose parent's parent hung up.
pub const PARENT_IS_GONE: i32 = 3;
/// What a shell adds to the number of the signal that ended a process.
const SIGNALLED: i32 = 128;

/// Which isolate of its worker a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolateTurn {
    First,
    Later,
}

/// Returns in children alone, one after the other. Works only in a process with one thread.
pub fn fork_for_each_isolate(socket: &UnixStream, protections: &mut [Protection]) -> Result<IsolateTurn, WorkerError> {
    let mut turn = IsolateTurn::First;
    loop {
        // SAFETY: this process has one thread, so the child finds no lock that somebody else held.
        #[allow(unsafe_code)]
        let forked = unsafe { fork() }.map_err(|error| WorkerError::Child(error.into()))?;
        match forked {
            ForkResult::Child => {
                jail::enter_child(socket, protections);
                return Ok(turn);
            }
            ForkResult::Parent { child } => match end_of(child)? {
                SPENT => turn = IsolateTurn::Later,
                PARENT_IS_GONE => leave(0),
                // Like the keeper: the exit status shows how the child ended.
                code => leave(code),
            },
        }
    }
}

fn end_of(child: Pid) -> Result<i32, WorkerError> {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Ok(SIGNALLED + signal as i32),
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(WorkerError::Child(error.into())),
        }
    }
}

/// Ends the process at once: what another thread does with the engine must not meet static destructors.
pub fn leave(code: i32) -> ! {
    // SAFETY: ends the process and touches nothing of it.
    #[allow(unsafe_code)]
    unsafe {
        nix::libc::_exit(code)
    }
}
