//! Private namespaces, and limits of each process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::identity::Identity;
use crate::command::CommandLimits;
use crate::protections::namespaces::Namespaces;

/// Limit on the descriptors of one process.
const OPEN_FILES: u64 = 512;
/// Limit on locked memory, in bytes; cryptographic libraries use some.
const LOCKED: u64 = 64 * 1024;
/// Limit on pending signals.
const SIGNALS: u64 = 256;
/// The first process of the jail and, if the user namespace was created before it, the keeper.
const AROUND: u64 = 2;

/// Creates the required namespaces. Returns whether the network is private.
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
    // These two are optional: without them, nothing can be changed.
    let _ = (namespaces.host_name, namespaces.cgroup);
    Ok(!network_is_granted)
}

/// The setting because of which the kernel refuses namespaces to ordinary users.
fn hint() -> &'static str {
    let is_on = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if is_on("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        " (AppArmor denies them to ordinary users: kernel.apparmor_restrict_unprivileged_userns is 1)"
    } else if is_on("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        " (kernel.unprivileged_userns_clone is 0)"
    } else if is_on("/proc/sys/user/max_user_namespaces", "0") {
        " (user.max_user_namespaces is 0)"
    } else {
        ""
    }
}

/// Limits of each process. Only the limit on processes is for all of them together.
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
    // One process must not use more than the limit for all of them, however that is enforced.
    set(Resource::RLIMIT_DATA, bounds.memory)?;
    set(Resource::RLIMIT_NPROC, u64::from(bounds.processes) + AROUND)
}
