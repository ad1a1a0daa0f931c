//! The start-up snapshot: made once by a worker of its own, kept in sealed memory, handed to every worker.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::SandboxError;
use crate::protocol::{Kind, Mode, decode};
use crate::spawner::Spawner;
use crate::worker::Worker;

/// More than any snapshot of the web platform, in bytes.
const MAX_BYTES: usize = 256 * 1024 * 1024;

pub struct Snapshot(File);

impl Snapshot {
    /// `None` when the engine has no snapshots.
    pub async fn make(spawner: &Spawner) -> Result<Option<Self>, SandboxError> {
        let mut worker = Worker::spawn(spawner, Mode::Snapshot, None, 0).await?;
        let mut bytes = Vec::new();
        loop {
            let frame = worker.next_while_starting().await?;
            match frame.kind {
                Kind::Snapshot if bytes.len() + frame.payload.len() <= MAX_BYTES => bytes.extend(&frame.payload),
                Kind::SnapshotEnd => {
                    let reason: Option<String> =
                        decode(&frame.payload).map_err(|error| SandboxError::Protocol(error.to_string()))?;
                    if let Some(reason) = reason {
                        tracing::info!(%reason, "workers start without a snapshot");
                        return Ok(None);
                    }
                    return seal(&bytes).map(Self).map(Some).map_err(SandboxError::Snapshot);
                }
                other => return Err(SandboxError::Protocol(format!("{other:?} instead of a snapshot"))),
            }
        }
    }

    /// A descriptor of its own for one worker, at the beginning of the bytes.
    pub fn share(&self) -> Result<OwnedFd, SandboxError> {
        // A descriptor from `dup` shares the place in the file; one that is opened anew does not.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.0));
        File::open(path).map(OwnedFd::from).map_err(SandboxError::Snapshot)
    }
}

fn seal(bytes: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("rcrt-snapshot", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(file.as_fd(), FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file)
}
