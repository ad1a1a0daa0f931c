//! The jail of the worker, one file for each restriction. They are applied at the start of the
//! process, before the engine and before any thread. A restriction that this kernel does not offer
//! is reported: the parent decides whether the rest is enough, and `rcrt doctor` shows the list.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::os::unix::net::UnixStream;

use sandbox::level::names;
use sandbox::protocol::{Protection, ProtectionState};

#[cfg(target_os = "linux")]
use linux as walls;
#[cfg(not(target_os = "linux"))]
use unsupported as walls;

pub use walls::{OwnMemory, OwnProcFolder};

use crate::WorkerError;

/// Puts up every wall there is, but for what `close_files` and `seal` do, and tells the parent, on `socket`, which process runs tool code, or has the children that do. Where there is a
/// process namespace that is a new process, in which alone this returns; the calling one stays outside as its keeper.
/// Descriptors from `first_foreign` on are not this process's own.
pub fn enter(socket: &mut UnixStream, first_foreign: i32) -> Result<(Vec<Protection>, OwnProcFolder), WorkerError> {
    walls::enter(socket, first_foreign)
}

/// In a new child, before its threads: it ends with this process, as this one ends with its own parent.
pub fn enter_child(socket: &UnixStream, protections: &mut [Protection]) {
    tell(protections, names::PARENT_DEATH, walls::enter_child(socket));
}

/// The last wall before the files, up to which a process can look for itself, and its children for themselves. It holds for
/// one thread and those that it starts.
pub fn close_files(kept: OwnProcFolder, protections: &mut [Protection]) -> OwnMemory {
    let (memory, landlock) = walls::close_files(kept);
    tell(protections, names::LANDLOCK, landlock);
    memory
}

/// When every thread is there that this process needs, and before any tool code: no further one starts.
pub fn seal(protections: &mut [Protection]) {
    let sealed = walls::seal();
    tell(protections, names::SECCOMP, sealed);
}

/// What became of a wall in the end. One that does not stand already has a reason of its own.
fn tell(protections: &mut [Protection], name: &str, outcome: Result<(), String>) {
    let wall = protections.iter_mut().find(|protection| protection.name == name);
    if let Some(wall @ Protection { state: ProtectionState::Applied, .. }) = wall {
        *wall = named(name, outcome);
    }
}

fn named(name: &str, outcome: Result<(), String>) -> Protection {
    let state = match outcome {
        Ok(()) => ProtectionState::Applied,
        Err(reason) => ProtectionState::Unavailable(reason),
    };
    Protection { name: name.into(), state }
}
