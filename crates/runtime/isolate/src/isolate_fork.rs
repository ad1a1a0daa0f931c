//! A process for each fresh isolate. The worker has the zygote's isolate, runs nothing in it, and
//! forks: a child gets the new isolate for the cost of the pages that it writes to. The worker
//! waits until the child exits, and then forks the next one. It reads nothing from the socket and
//! never runs a tool's code.

use std::os::unix::net::UnixStream;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use rcrt_sandbox::protocol::Protection;

use crate::WorkerError;
use crate::jail;

/// Exit status of a child whose isolate is not needed any more.
pub const DONE: i32 = 0;
/// Exit status of a child when the runner closed the socket.
pub const PARENT_IS_GONE: i32 = 3;
/// The exit code of a process that a signal killed is this plus the signal number, as in a shell.
const SIGNALLED: i32 = 128;

/// Whether a process has its worker's first isolate or a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolateTurn {
    First,
    Later,
}

/// Returns only in children, one after the other. Works only in a process with one thread.
pub fn fork_for_each_isolate(socket: &UnixStream, protections: &mut [Protection]) -> Result<IsolateTurn, WorkerError> {
    let mut turn = IsolateTurn::First;
    loop {
        // SAFETY: this process has one thread, so the child finds no lock held by another.
        #[allow(unsafe_code)]
        let forked = unsafe { fork() }.map_err(|error| WorkerError::Child(error.into()))?;
        match forked {
            ForkResult::Child => {
                jail::enter_child(socket, protections);
                return Ok(turn);
            }
            ForkResult::Parent { child } => match end_of(child)? {
                DONE => turn = IsolateTurn::Later,
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

/// Exits at once: what another thread does with the engine must not run into static destructors.
pub fn leave(code: i32) -> ! {
    // SAFETY: exits at once and accesses no memory.
    #[allow(unsafe_code)]
    unsafe {
        nix::libc::_exit(code)
    }
}
