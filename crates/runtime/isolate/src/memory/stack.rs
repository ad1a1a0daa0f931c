//! The stack of the isolate's thread. Close to its end every function of the platform can fail, at
//! any step, and leave the state that it keeps for all calls half changed.

/// How much stack the engine uses, in bytes: as much as by default.
const BYTES: usize = 984 * 1024;
/// Less than this much is close to the end, in bytes. The engine stops compiling with 40 KiB left.
const CLOSE: usize = 64 * 1024;

/// The part of the thread's stack that an isolate uses.
pub struct Stack {
    end: usize,
}

impl Stack {
    /// The stack from here on.
    pub fn here() -> Self {
        let here = 0u8;
        // At the boundary of a page of any size.
        Self { end: (&raw const here).addr().saturating_sub(BYTES) & !(CLOSE - 1) }
    }

    /// The address where it ends.
    pub fn end(&self) -> *mut u32 {
        std::ptr::without_provenance_mut(self.end)
    }

    /// Whether code ran close to the end since the process was made. It then wrote to pages there,
    /// even if one of its frames left out others.
    #[cfg(target_os = "linux")]
    pub fn was_used_up(&self) -> bool {
        use nix::errno::Errno;
        use nix::libc;

        // SAFETY: reads a constant of the system.
        #[allow(unsafe_code)]
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let Some(size) = usize::try_from(size).ok().filter(|size| (1..=CLOSE).contains(size)) else { return true };
        for page in (self.end..self.end + CLOSE).step_by(size).rev() {
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
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub fn was_used_up(&self) -> bool {
        false
    }
}
