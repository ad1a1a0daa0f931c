//! What a process changes about itself with one system call.

use std::io;

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::Signal;

use super::ProtectionResult;

const NICE: libc::c_int = 5;
/// The maximum: of all processes, this one is killed first when memory runs out.
const OOM_SCORE: &str = "1000";

/// Closes every descriptor from `first` on: a build tool or a shell may have passed some on by
/// mistake. Call it before this process opens anything itself.
pub fn close_descriptors_from(first: i32) -> ProtectionResult {
    let first = libc::c_uint::try_from(first).map_err(|error| error.to_string())?;
    // SAFETY: nothing in this process owns a descriptor from `first` on yet, so none is closed
    // under its owner.
    #[allow(unsafe_code)]
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error().to_string()) }
}

/// Prevents core dumps. A limit on a core's size has no effect where cores are piped to a program;
/// a process that is not dumpable has no core, and its memory in /proc is hidden from its own user
/// as well.
pub fn forbid_core_dumps() -> ProtectionResult {
    prctl::set_dumpable(false).map_err(|error| error.to_string())
}

/// The kernel kills the process when the thread that started it ends. Before this is set, the
/// process must detect its parent's end in another way.
pub fn die_with_parent() -> ProtectionResult {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| error.to_string())
}

/// Makes the kernel kill this process before the runner and the database when memory runs out. Call
/// it while `/proc` is visible. Any process can raise this number; only the superuser can lower it.
pub fn raise_oom_score() -> ProtectionResult {
    let path = "/proc/self/oom_score_adj";
    std::fs::write(path, OOM_SCORE).map_err(|error| format!("{path}: {error}"))
}

/// Yields the processor to the runner and the database.
pub fn lower_priority() -> ProtectionResult {
    // SAFETY: setpriority takes three integers and accesses no memory.
    #[allow(unsafe_code)]
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error().to_string()) }
}
