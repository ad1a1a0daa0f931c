//! A user namespace without any mapped id, and in it a network without interfaces, and IPC, host names and mounts of
//! its own. Works only while the process has one thread.

use nix::sched::{CloneFlags, unshare};

pub fn apply() -> Result<(), String> {
    let all = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWNS;
    unshare(all).map_err(|error| format!("the kernel refuses user namespaces: {error}"))
}
