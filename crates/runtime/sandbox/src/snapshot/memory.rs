//! The snapshot in sealed memory, which no process can change, not even its readers.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

pub struct SnapshotStorage(File);

impl SnapshotStorage {
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memfd_create("rcrt-snapshot", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
        file.write_all(bytes)?;
        file.rewind()?;
        let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(file.as_fd(), FcntlArg::F_ADD_SEALS(seals))?;
        Ok(Self(file))
    }

    /// Opens it again: a descriptor from `dup` would share the file position.
    pub fn open(&self) -> io::Result<OwnedFd> {
        File::open(format!("/proc/self/fd/{}", self.0.as_raw_fd())).map(OwnedFd::from)
    }
}
