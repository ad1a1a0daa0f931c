//! The walls around the worker, one file each. They go up at the start of the process, before the engine and before
//! any thread. A wall that this kernel does not offer is reported, not hidden: the parent decides whether what stands
//! is enough, and `rcrt doctor` shows the list.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

use std::os::unix::net::UnixStream;

use sandbox::level::names;
use sandbox::protocol::{Protection, ProtectionState};

#[cfg(not(target_os = "linux"))]
use elsewhere as walls;
#[cfg(target_os = "linux")]
use linux as walls;

pub use walls::OwnMemory;

use crate::WorkerError;

/// Puts up every wall there is and tells the parent, on `socket`, which process runs tool code. Where there is a
/// process namespace that is a new process, in which alone this returns; the calling one stays outside as its keeper.
/// Descriptors from `first_foreign` on are not this process's own.
pub fn enter(socket: &mut UnixStream, first_foreign: i32) -> Result<(Vec<Protection>, OwnMemory), WorkerError> {
    walls::enter(socket, first_foreign)
}

/// When every thread is there that this process needs, and before any tool code: no further one starts.
pub fn seal(protections: &mut [Protection]) {
    let sealed = walls::seal();
    let filter = protections.iter_mut().find(|protection| protection.name == names::SECCOMP);
    // A wall that does not stand at all has a reason of its own.
    if let (Some(filter @ Protection { state: ProtectionState::Applied, .. }), Err(_)) = (filter, &sealed) {
        *filter = named(names::SECCOMP, sealed);
    }
}

fn named(name: &str, outcome: Result<(), String>) -> Protection {
    let state = match outcome {
        Ok(()) => ProtectionState::Applied,
        Err(reason) => ProtectionState::Unavailable(reason),
    };
    Protection { name: name.into(), state }
}
