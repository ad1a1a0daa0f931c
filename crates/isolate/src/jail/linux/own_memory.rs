//! What the kernel tells a process of its own memory: how much it is, for the engine's meter, and where. The folder stays
//! open for the children of this process, each of which finds itself there; when no file can be opened any more, one is
//! left.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// `/proc`, which a process finds itself in after it has been forked.
pub fn processes() -> Option<File> {
    File::open("/proc").ok()
}

/// A process that is to have children, or its child before it looked for itself.
pub struct OwnProcFolder(Option<File>);

#[derive(Default)]
pub struct OwnMemory(Option<File>);

impl OwnProcFolder {
    pub fn new(processes: Option<File>) -> Self {
        Self(processes)
    }

    /// Of the calling process. Nothing else is open afterwards.
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
        // SAFETY: asks the C library for a number. It has it from the start; others would look into /proc for it.
        #[allow(unsafe_code)]
        let page = unsafe { nix::libc::sysconf(nix::libc::_SC_PAGESIZE) };
        Some(pages * u64::try_from(page).ok()?)
    }
}
