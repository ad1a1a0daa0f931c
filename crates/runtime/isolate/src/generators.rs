//! Checks whether the process can be forked safely with regard to its random number generators.
//!
//! The kernel's generator (`OsRng`, V8's seeds) has no state in the process. aws-lc's detects a
//! fork by a page that the kernel wipes. The thread's generator detects a fork by a handler of the
//! C library, which `clone` does not run, and only when its buffered numbers are used up. It cannot
//! be asked whether it has any. If it has, two copies of the process draw the same numbers.

use std::io::{self, Read, Write};

use deno_crypto::rand::{RngCore, thread_rng};
use nix::libc;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::isolate_fork;

/// Long enough that two draws are not equal by chance.
type Drawn = [u8; 32];

/// Whether the thread's generator has no state yet that copies of this process would share. Draws
/// numbers in two copies and does not change this process. Works only in a process with one thread.
pub fn are_unused() -> io::Result<bool> {
    Ok(drawn_in_a_copy()? != drawn_in_a_copy()?)
}

fn drawn_in_a_copy() -> io::Result<Drawn> {
    let (mut from, mut to) = io::pipe()?;
    let mut drawn = Drawn::default();
    let Some(copy) = copy(libc::SIGCHLD)? else {
        thread_rng().fill_bytes(&mut drawn);
        isolate_fork::leave(i32::from(to.write_all(&drawn).is_err()))
    };
    drop(to);
    let read = from.read_exact(&mut drawn);
    waitpid(copy, None)?;
    read.map(|()| drawn)
}

/// Forks this process without running fork handlers. Returns `None` in the copy.
pub(crate) fn copy(flags: libc::c_int) -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so the new one finds no lock held by another, and
    // continues with a copy of the same stack. It needs nothing that the C library's fork handlers
    // would do.
    #[allow(unsafe_code)]
    let copied = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match i32::try_from(copied) {
        Ok(0) => Ok(None),
        Ok(process) if process > 0 => Ok(Some(Pid::from_raw(process))),
        _ => Err(io::Error::last_os_error()),
    }
}
