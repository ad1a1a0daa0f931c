//! The restrictions on Linux, in an order in which none blocks the next.

mod limits;
mod own_memory;
mod seccomp;

use std::os::unix::net::UnixStream;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::Pid;
use rcrt_jail::protections::namespaces::Namespaces;
use rcrt_jail::protections::{empty_root, keeper, landlock, privileges, process};
use rcrt_sandbox::level::names;
use rcrt_sandbox::protocol::{Frame, Protection, write_frame};
use rustix::thread::CapabilitySet;

pub use own_memory::{OwnMemory, OwnProcFolder};
pub use seccomp::seal;

use super::named;
use crate::WorkerError;

pub fn enter(socket: &mut UnixStream, first_foreign: i32) -> Result<(Vec<Protection>, OwnProcFolder), WorkerError> {
    let parent = nix::unistd::getppid();
    let descriptors = process::close_descriptors_from(first_foreign);
    // Opened while files can still be opened.
    let processes = own_memory::processes();
    let goes_first = process::raise_oom_score();
    let privileges = privileges::forbid_new();
    let (namespaces, root, user) = if privileges::held_capabilities().contains(CapabilitySet::SYS_ADMIN) {
        // With the operator's privileges everything except the user namespace works even if the
        // kernel refuses that one.
        let mut namespaces = Namespaces::default().unshare_others();
        let root = empty_root::apply(&namespaces);
        let user = privileges::become_ordinary_user();
        namespaces.unshare_user();
        (namespaces, root, user)
    } else {
        let mut namespaces = Namespaces::default();
        namespaces.unshare_user();
        let namespaces = namespaces.unshare_others();
        let root = empty_root::apply(&namespaces);
        (namespaces, root, privileges::become_ordinary_user())
    };
    let limits = limits::apply(namespaces.user.is_ok());
    let priority = process::lower_priority().and(goes_first);
    let capabilities = privileges::drop_capabilities();
    // After every change of credentials, which resets both.
    let core_dumps = process::forbid_core_dumps();
    let death = process::die_with_parent();
    if nix::unistd::getppid() != parent {
        return Err(WorkerError::Orphan);
    }
    let mut death_of_keeper = Ok(());
    if namespaces.process.is_ok() {
        let announce = |child: Pid| write_frame(socket, &Frame::process(child.as_raw().unsigned_abs())).is_ok();
        death_of_keeper = keeper::fork(announce, keep).map_err(WorkerError::Keeper)?;
    } else {
        write_frame(socket, &Frame::process(std::process::id()))?;
    }
    // Signals to the process group reach only this process. It fails if the process leads a session
    // already.
    let _ = nix::unistd::setsid();
    let seccomp = seccomp::apply();
    let mut protections = vec![
        named(names::DESCRIPTORS, descriptors),
        named(names::PRIVILEGES, privileges),
        named(names::SECCOMP, seccomp),
        named(names::EMPTY_ROOT, root),
        named(names::LANDLOCK, Ok(())),
        named(names::CAPABILITIES, capabilities),
        named(names::ORDINARY_USER, user),
    ];
    protections.extend(report(namespaces));
    protections.extend([
        named(names::RESOURCE_LIMITS, limits),
        named(names::NO_CORE_DUMPS, core_dumps),
        named(names::PARENT_DEATH, death.and(death_of_keeper)),
        named(names::LOW_PRIORITY, priority),
    ]);
    Ok((protections, OwnProcFolder::new(processes)))
}

/// Without a PID namespace, the child must request to exit with its parent; in one it does anyway.
pub fn enter_child(socket: &UnixStream) -> Result<(), String> {
    // The previous child had the same socket and may have changed its mode.
    fcntl(socket, FcntlArg::F_SETFL(OFlag::empty())).map_err(|error| error.to_string())?;
    process::die_with_parent()
}

pub fn close_files(kept: OwnProcFolder) -> (OwnMemory, Result<(), String>) {
    (kept.own(), landlock::apply())
}

/// The keeper mirrors how the worker ended, since the parent started the keeper.
fn keep(child: Pid) -> i32 {
    // From here on only the child holds the socket and standard error.
    let _ = process::close_descriptors_from(0);
    // Optional: nothing can communicate with the keeper anyway.
    let _ = seccomp::apply_to_keeper();
    keeper::mirror(child)
}

fn report(namespaces: Namespaces) -> [Protection; 7] {
    [
        named(names::USER_NAMESPACE, namespaces.user),
        named(names::MOUNT_NAMESPACE, namespaces.mount),
        named(names::PROCESS_NAMESPACE, namespaces.process),
        named(names::IPC_NAMESPACE, namespaces.ipc),
        named(names::HOST_NAME_NAMESPACE, namespaces.host_name),
        named(names::NETWORK_NAMESPACE, namespaces.network),
        named(names::CGROUP_NAMESPACE, namespaces.cgroup),
    ]
}
