//! Closes inherited descriptors: a build tool or a shell may have passed some on by mistake.

use std::io;

use nix::libc;

/// Closes every descriptor from `first` on. Call it before this process opens anything itself.
pub fn close_from(first: i32) -> Result<(), String> {
    let first = libc::c_uint::try_from(first).map_err(|error| error.to_string())?;
    // SAFETY: nothing in this process owns a descriptor from `first` on yet, so none is closed
    // under its owner.
    #[allow(unsafe_code)]
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error().to_string()) }
}
