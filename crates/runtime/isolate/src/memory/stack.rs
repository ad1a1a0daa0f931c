//! The stack of a process's first thread, on which the isolate runs. Close to its end every
//! function of the platform can fail, at any step, and leave the state that it keeps for all calls
//! half changed.

/// Whether code ran close to the end since the process was made. It then wrote to pages there, even
/// if one of its frames left out others.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn was_used_up() -> bool {
    use nix::errno::Errno;
    use nix::libc;

    /// How much stack the engine uses, in bytes: its default (`--stack-size`). It overwrites the
    /// limit of `CreateParams` with this one.
    const BYTES: usize = 984 * 1024;
    /// Less than this much is close to the end, in bytes. The engine stops compiling with 40 KiB
    /// left.
    const CLOSE: usize = 64 * 1024;

    #[allow(unsafe_code)]
    unsafe extern "C" {
        /// Where the stack of the first thread begins. The engine uses it too.
        safe static __libc_stack_end: usize;
    }

    // SAFETY: reads a constant of the system.
    #[allow(unsafe_code)]
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(size) = usize::try_from(size).ok().filter(|size| (1..=CLOSE).contains(size)) else { return true };
    let end = __libc_stack_end.saturating_sub(BYTES) & !(size - 1);
    for page in (end..end + CLOSE).step_by(size).rev() {
        let mut found = 0;
        // SAFETY: reads no memory, and writes one byte for the one page.
        #[allow(unsafe_code)]
        let asked = unsafe { libc::mincore(std::ptr::without_provenance_mut(page), size, &raw mut found) };
        if asked == 0 && found & 1 == 0 {
            continue;
        }
        // Without memory: the kernel has not extended the stack to here, nor to what is below.
        return asked == 0 || Errno::last() != Errno::ENOMEM;
    }
    false
}

/// Not known on this system.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn was_used_up() -> bool {
    false
}
