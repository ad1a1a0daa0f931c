//! The jail of the worker, one file for each restriction. They are applied at the start of the
//! process, before the engine and before any thread. A restriction that this kernel does not offer
//! is reported: the parent decides whether the rest is enough, and `rcrt doctor` shows the list.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::os::unix::net::UnixStream;

use rcrt_sandbox::level::names;
use rcrt_sandbox::protocol::{Protection, ProtectionState};

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(not(target_os = "linux"))]
use unsupported as platform;

pub use platform::{OwnMemory, OwnProcFolder};

use crate::WorkerError;

/// Applies every restriction except those of `close_files` and `seal`. Reports to the parent, on
/// `socket`, which process runs tool code or forks the children that do. With a PID namespace this
/// is a new process, and the function returns only there; the calling process stays outside as its
/// keeper. Descriptors from `first_foreign` on do not belong to this process.
pub fn enter(socket: &mut UnixStream, first_foreign: i32) -> Result<(Vec<Protection>, OwnProcFolder), WorkerError> {
    platform::enter(socket, first_foreign)
}

/// In a new child, before its threads start: makes it exit with its parent.
pub fn enter_child(socket: &UnixStream, protections: &mut [Protection]) {
    update(protections, names::PARENT_DEATH, platform::enter_child(socket));
}

/// The last restriction on files. Until then a process and its children can open their own `/proc`
/// entries. It applies to the calling thread and those that it starts.
pub fn close_files(kept: OwnProcFolder, protections: &mut [Protection]) -> OwnMemory {
    let (memory, landlock) = platform::close_files(kept);
    update(protections, names::LANDLOCK, landlock);
    memory
}

/// Call it when all threads of the process have started, and before any tool code: no further
/// thread can start.
pub fn seal(protections: &mut [Protection]) {
    let sealed = platform::seal();
    update(protections, names::SECCOMP, sealed);
}

/// Updates the state of a protection, unless it is already unavailable for another reason.
fn update(protections: &mut [Protection], name: &str, outcome: Result<(), String>) {
    let found = protections.iter_mut().find(|protection| protection.name == name);
    if let Some(found @ Protection { state: ProtectionState::Applied, .. }) = found {
        *found = named(name, outcome);
    }
}

fn named(name: &str, outcome: Result<(), String>) -> Protection {
    let state = match outcome {
        Ok(()) => ProtectionState::Applied,
        Err(reason) => ProtectionState::Unavailable(reason),
    };
    Protection { name: name.into(), state }
}
