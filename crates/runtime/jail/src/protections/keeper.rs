//! The keeper: a process that stays outside of a new PID namespace while its child is the first
//! process in it. When the keeper dies, so does the child, and with it everything in the namespace.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork as fork_process};

use super::{ProtectionResult, process};

/// The exit code of a process that a signal killed is this plus the signal number, as in a shell.
const SIGNALLED: i32 = 128;

/// Returns only in the child. The calling process becomes the keeper. It calls `announce` with its
/// child's id. If that returns true the child continues, otherwise it is killed. The keeper exits
/// with the code that `keep` returns. The inner result says whether the child dies with its keeper.
/// Works only in a process with one thread.
pub fn fork(announce: impl FnOnce(Pid) -> bool, keep: impl FnOnce(Pid) -> i32) -> io::Result<ProtectionResult> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    // SAFETY: this process has one thread, so the child finds no lock held by another.
    #[allow(unsafe_code)]
    let forked = unsafe { fork_process() }?;
    match forked {
        ForkResult::Parent { child } => {
            drop(theirs);
            if !(ours.read_exact(&mut [0]).is_ok() && announce(child) && ours.write_all(&[0]).is_ok()) {
                let _ = kill(child, Signal::SIGKILL);
            }
            drop(ours);
            leave(keep(child))
        }
        ForkResult::Child => {
            drop(ours);
            let death = process::die_with_parent();
            exit_on_abort()?;
            // The child cannot check whether the keeper is alive. It waits for the keeper's byte,
            // which arrives only if the keeper is alive, and only after its death would be noticed.
            theirs.write_all(&[0])?;
            theirs.read_exact(&mut [0])?;
            Ok(death)
        }
    }
}

/// The first process of a namespace is its init: a signal that it sends to itself has no effect
/// without a handler.
fn exit_on_abort() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(die), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler calls one async-signal-safe function, which does not return.
    #[allow(unsafe_code)]
    unsafe { sigaction(Signal::SIGABRT, &action) }.map(drop)
}

extern "C" fn die(signal: libc::c_int) {
    leave(SIGNALLED + signal)
}

/// Waits for the child and exits as it did, so that the keeper's exit status is the child's.
pub fn mirror(child: Pid) -> ! {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => exit_like(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => exit_by_signal(signal),
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(_) => leave(1),
        }
    }
}

fn exit_like(code: i32) -> ! {
    match Signal::try_from(code - SIGNALLED) {
        Ok(signal) => exit_by_signal(signal),
        Err(_) => leave(code),
    }
}

fn exit_by_signal(signal: Signal) -> ! {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs no code of this process.
    #[allow(unsafe_code)]
    let _ = unsafe { sigaction(signal, &action) };
    let _ = kill(Pid::this(), signal);
    // The signal does not end processes.
    leave(SIGNALLED + signal as i32)
}

/// Exits at once: nothing that was inherited is flushed or cleaned up twice.
pub fn leave(code: i32) -> ! {
    // SAFETY: exits at once and accesses no memory.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(code)
    }
}
