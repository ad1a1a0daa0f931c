//! The superuser's worker becomes the user nobody: without capabilities the superuser would still
//! own the machine's files, and the limit on processes does not apply to it.

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::thread::CapabilitySet;

use super::capabilities;

/// The conventional user and group that own no files.
const NOBODY: u32 = 65534;
/// The capabilities that the parent needs to kill and to limit a process of another user. The
/// parent has the same capabilities as this process.
const PARENT: CapabilitySet = CapabilitySet::KILL.union(CapabilitySet::SYS_RESOURCE);
const CHANGE: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

pub fn apply() -> Result<(), String> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    let missing = PARENT.union(CHANGE).difference(capabilities::held());
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter_names().map(|(name, _)| name).collect();
        return Err(format!(
            "the superuser cannot limit another user's processes: it lacks CAP_{}",
            names.join(", CAP_")
        ));
    }
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    setgroups(&[])
        .and_then(|()| setresgid(group, group, group))
        .and_then(|()| setresuid(user, user, user))
        .map_err(|error| format!("the kernel refuses it: {error}"))
}
