//! The snapshot in a file, for kernels without sealed memory: read-only, and deleted with the
//! sandbox.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use uuid::Uuid;

pub struct SnapshotStorage(PathBuf);

impl SnapshotStorage {
    pub fn new(bytes: &[u8]) -> io::Result<Self> {
        let storage = Self(std::env::temp_dir().join(format!("rcrt-snapshot-{}", Uuid::new_v4())));
        OpenOptions::new().write(true).create_new(true).mode(0o400).open(&storage.0)?.write_all(bytes)?;
        Ok(storage)
    }

    pub fn open(&self) -> io::Result<OwnedFd> {
        fs::File::open(&self.0).map(OwnedFd::from)
    }
}

impl Drop for SnapshotStorage {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
