//! Drops every capability, and prevents that one returns.

use nix::libc;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
};

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

/// The effective capabilities; empty if the kernel does not report them.
pub fn held() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

pub fn drop_all() -> Result<(), String> {
    if held().contains(CapabilitySet::SETPCAP) {
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
