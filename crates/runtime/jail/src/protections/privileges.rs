//! Gives up privileges: capabilities, the superuser's id, and gaining either by exec.

use nix::libc;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
};

use super::ProtectionResult;

/// Locked: user id 0 grants no capabilities, a change of user id keeps none, and exec passes none
/// on.
const SECURE: u32 = (libc::SECBIT_NOROOT
    | libc::SECBIT_NOROOT_LOCKED
    | libc::SECBIT_NO_SETUID_FIXUP
    | libc::SECBIT_NO_SETUID_FIXUP_LOCKED
    | libc::SECBIT_KEEP_CAPS_LOCKED
    | libc::SECBIT_NO_CAP_AMBIENT_RAISE
    | libc::SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) as u32;
/// The highest capability number that a kernel can define.
const HIGHEST: u32 = 63;
/// The conventional user and group that own no files.
const NOBODY: u32 = 65534;
/// The capabilities that the parent needs to kill and to limit a process of another user. The
/// parent has the same capabilities as this process.
const PARENT: CapabilitySet = CapabilitySet::KILL.union(CapabilitySet::SYS_RESOURCE);
const CHANGE: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// Prevents the process and its descendants from gaining privileges by exec.
pub fn forbid_new() -> ProtectionResult {
    nix::sys::prctl::set_no_new_privs().map_err(|error| error.to_string())
}

/// The effective capabilities; empty if the kernel does not report them.
pub fn held_capabilities() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// Drops every capability, and prevents that one returns.
pub fn drop_capabilities() -> ProtectionResult {
    if held_capabilities().contains(CapabilitySet::SETPCAP) {
        let bits = CapabilitiesSecureBits::from_bits_retain(SECURE);
        set_capabilities_secure_bits(bits).map_err(|error| format!("the secure bits: {error}"))?;
        for number in 0..=HIGHEST {
            let one = CapabilitySet::from_bits_retain(1 << number);
            // This kernel does not have this number.
            if remove_capability_from_bounding_set(one).is_err() {
                break;
            }
        }
    }
    // Linux before 4.3 does not have this set.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| error.to_string())?;
    let left = capabilities(None).map_err(|error| error.to_string())?;
    if (left.effective | left.permitted | left.inheritable).is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
}

/// A superuser's process becomes the user nobody: without capabilities the superuser would still
/// own the machine's files, and the limit on processes does not apply to it.
pub fn become_ordinary_user() -> ProtectionResult {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    let missing = PARENT.union(CHANGE).difference(held_capabilities());
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
