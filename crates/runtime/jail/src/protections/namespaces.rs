//! Private namespaces: a network without interfaces, process ids, mounts, IPC, a host name and a
//! view of the cgroups, under a user without any mapped id. Works only while the process has one
//! thread.

use std::io;

use nix::libc;
use nix::sched::{CloneFlags, unshare};

use super::ProtectionResult;

pub struct Namespaces {
    pub user: ProtectionResult,
    pub mount: ProtectionResult,
    /// Applies to processes that are forked from now on.
    pub process: ProtectionResult,
    pub ipc: ProtectionResult,
    pub host_name: ProtectionResult,
    pub network: ProtectionResult,
    pub cgroup: ProtectionResult,
}

impl Default for Namespaces {
    fn default() -> Self {
        let none = || Err("not requested".to_owned());
        Self {
            user: none(),
            mount: none(),
            process: none(),
            ipc: none(),
            host_name: none(),
            network: none(),
            cgroup: none(),
        }
    }
}

impl Namespaces {
    /// Creates a user namespace. The process has all capabilities inside it.
    pub fn unshare_user(&mut self) {
        self.user = unshare_one(CloneFlags::CLONE_NEWUSER);
    }

    /// Creates all other namespaces. If the kernel refuses one, the others are created.
    #[must_use]
    pub fn unshare_others(self) -> Self {
        self.unshare_all_of(
            CloneFlags::CLONE_NEWNS
                | CloneFlags::CLONE_NEWPID
                | CloneFlags::CLONE_NEWIPC
                | CloneFlags::CLONE_NEWUTS
                | CloneFlags::CLONE_NEWNET
                | CloneFlags::CLONE_NEWCGROUP,
        )
    }

    /// The same, but the process stays in its network.
    #[must_use]
    pub fn unshare_all_but_the_network(self) -> Self {
        let shared = Err("the network is granted".to_owned());
        let others = CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWCGROUP;
        Self { network: shared, ..self.unshare_all_of(others) }
    }

    fn unshare_all_of(self, all: CloneFlags) -> Self {
        let together = unshare(all).is_ok();
        let one = |flag| match (all.contains(flag), together) {
            (true, true) => Ok(()),
            (true, false) => unshare_one(flag),
            (false, _) => Err("not requested".to_owned()),
        };
        Self {
            user: self.user,
            mount: one(CloneFlags::CLONE_NEWNS),
            process: one(CloneFlags::CLONE_NEWPID),
            ipc: one(CloneFlags::CLONE_NEWIPC),
            host_name: one(CloneFlags::CLONE_NEWUTS).and_then(|()| forget_host_name()),
            network: one(CloneFlags::CLONE_NEWNET),
            cgroup: one(CloneFlags::CLONE_NEWCGROUP),
        }
    }
}

fn unshare_one(flag: CloneFlags) -> ProtectionResult {
    unshare(flag).map_err(|error| format!("the kernel refuses it: {error}"))
}

/// A new namespace starts with the machine's names.
fn forget_host_name() -> ProtectionResult {
    let name = c"worker";
    // SAFETY: both calls read 6 bytes of a string that outlives them.
    #[allow(unsafe_code)]
    let results = unsafe { [libc::sethostname(name.as_ptr(), 6), libc::setdomainname(name.as_ptr(), 6)] };
    if results == [0, 0] { Ok(()) } else { Err(io::Error::last_os_error().to_string()) }
}
