//! Namespaces of its own, and limits of each process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::identity::Identity;
use crate::command::CommandLimits;
use crate::walls::namespaces::Namespaces;

/// Descriptors of one process.
const OPEN_FILES: u64 = 512;
/// Memory that is kept from being swapped out, in bytes; what cryptographic libraries use.
const LOCKED: u64 = 64 * 1024;
/// Signals that wait.
const SIGNALS: u64 = 256;
/// The first process of the jail and, where the user namespace was made before it, the keeper.
const AROUND: u64 = 2;

/// Makes the namespaces that must be there. Gives whether the network is one of its own.
pub fn unshare(identity: Identity, network_is_granted: bool) -> Result<bool, String> {
    let mut namespaces = Namespaces::default();
    if !identity.is_superuser() {
        namespaces.unshare_user();
        let user = std::mem::replace(&mut namespaces.user, Ok(()));
        user.map_err(|reason| format!("user namespace: {reason}{}", hint()))?;
        identity.map_ids().map_err(|reason| format!("user namespace: {reason}"))?;
    }
    let namespaces =
        if network_is_granted { namespaces.unshare_all_but_the_network() } else { namespaces.unshare_others() };
    namespaces.mount.map_err(|reason| format!("mount namespace: {reason}{}", hint()))?;
    namespaces.process.map_err(|reason| format!("process namespace: {reason}"))?;
    namespaces.ipc.map_err(|reason| format!("ipc namespace: {reason}"))?;
    if !network_is_granted {
        namespaces.network.map_err(|reason| format!("network namespace: {reason}"))?;
    }
    // Its absence hides nothing that could be changed.
    let _ = (namespaces.host_name, namespaces.cgroup);
    Ok(!network_is_granted)
}

/// What an operator can do where the kernel refuses ordinary users namespaces.
fn hint() -> &'static str {
    let is_on = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if is_on("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        " (AppArmor keeps them from ordinary users: kernel.apparmor_restrict_unprivileged_userns is 1)"
    } else if is_on("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        " (kernel.unprivileged_userns_clone is 0)"
    } else if is_on("/proc/sys/user/max_user_namespaces", "0") {
        " (user.max_user_namespaces is 0)"
    } else {
        ""
    }
}

/// Bounds of each process by itself; the number of processes is that of all together.
pub fn limit(bounds: &CommandLimits) -> Result<(), String> {
    let set = |resource: Resource, value: u64| {
        let (_, most) = getrlimit(resource).map_err(|error| format!("{resource:?}: {error}"))?;
        let value = value.min(most);
        setrlimit(resource, value, value).map_err(|error| format!("{resource:?}: {error}"))
    };
    set(Resource::RLIMIT_CORE, 0)?;
    set(Resource::RLIMIT_FSIZE, bounds.file)?;
    set(Resource::RLIMIT_NOFILE, OPEN_FILES)?;
    set(Resource::RLIMIT_MEMLOCK, LOCKED)?;
    set(Resource::RLIMIT_MSGQUEUE, 0)?;
    set(Resource::RLIMIT_SIGPENDING, SIGNALS)?;
    // One process alone must not have more than all together, whatever counts those.
    set(Resource::RLIMIT_DATA, bounds.memory)?;
    set(Resource::RLIMIT_NPROC, u64::from(bounds.processes) + AROUND)
}
