//! How much memory the process has, for the engine's meter: a file of the kernel's that stays open when no other can be
//! opened any more.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// `/proc`, which a process finds itself in after it has been forked.
pub fn processes() -> Option<File> {
    File::open("/proc").ok()
}

pub struct OwnMemory(Option<File>);

impl OwnMemory {
    pub fn open(processes: Option<File>) -> Self {
        let statm = |processes| openat(processes, "self/statm", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).ok();
        Self(processes.and_then(statm).map(File::from))
    }

    /// Writable private memory of the process, in bytes, as RLIMIT_DATA counts it.
    pub fn data_bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let pages: u64 = text.split_ascii_whitespace().nth(5)?.parse().ok()?;
        // SAFETY: asks the C library for a number. It has it from the start; others would look into /proc for it.
        #[allow(unsafe_code)]
        let page = unsafe { nix::libc::sysconf(nix::libc::_SC_PAGESIZE) };
        Some(pages * u64::try_from(page).ok()?)
    }
}
