//! What the C library's allocator keeps of memory that nobody uses.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use nix::libc;

/// To be called while the process has one thread. An arena for each thread would hold pages of its own, and few of the
/// threads here allocate at the same time.
pub fn share_one_arena() {
    // SAFETY: sets a number before any other thread allocates.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives free pages back to the kernel.
pub fn trim() {
    // SAFETY: touches only what is free.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    unsafe {
        libc::malloc_trim(0);
    }
}
