//! The process's memory size as the kernel reports it, for the meter. `/proc` stays open for the
//! children of this process, each of which opens its own entry. When no file can be opened any
//! more, one descriptor is left.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// `/proc`, in which a process finds its own entry after a fork.
pub fn processes() -> Option<File> {
    File::open("/proc").ok()
}

/// For a process that will fork, or a child that has not opened its own entry yet.
pub struct OwnProcFolder(Option<File>);

#[derive(Default)]
pub struct OwnMemory(Option<File>);

impl OwnProcFolder {
    pub fn new(processes: Option<File>) -> Self {
        Self(processes)
    }

    /// Opens the entry of the calling process and closes `/proc`.
    pub fn own(self) -> OwnMemory {
        OwnMemory(self.open("self/statm").ok())
    }

    fn open(&self, path: &str) -> io::Result<File> {
        let processes = self.0.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(openat(processes, path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?.into())
    }
}

impl OwnMemory {
    /// Writable private memory of the process, in bytes, as RLIMIT_DATA counts it.
    pub fn data_bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let length = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let pages: u64 = text.split_ascii_whitespace().nth(5)?.parse().ok()?;
        // SAFETY: reads a number from the C library. That number is known from the start; others
        // would be read from /proc.
        #[allow(unsafe_code)]
        let page = unsafe { nix::libc::sysconf(nix::libc::_SC_PAGESIZE) };
        Some(pages * u64::try_from(page).ok()?)
    }
}
