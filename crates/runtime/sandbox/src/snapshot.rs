//! The start-up snapshot: made once by a separate worker, stored where no process can change it,
//! passed to every worker.

#[cfg_attr(not(target_os = "linux"), path = "snapshot/file.rs")]
#[cfg_attr(target_os = "linux", path = "snapshot/memory.rs")]
mod storage;

use std::os::fd::OwnedFd;

use crate::SandboxError;
use crate::protocol::{Kind, Mode, decode};
use crate::spawner::Spawner;
use crate::worker::Worker;

/// More than any snapshot of the web platform, in bytes.
const MAX_BYTES: usize = 256 * 1024 * 1024;

pub struct Snapshot(storage::SnapshotStorage);

impl Snapshot {
    /// `None` when the engine has no snapshots.
    pub async fn make(spawner: &Spawner) -> Result<Option<Self>, SandboxError> {
        let mut worker = Worker::spawn(spawner, Mode::Snapshot, None, 0).await?;
        let made = Self::receive(&mut worker).await;
        // Its process has exited before the first worker starts.
        worker.kill().await;
        made
    }

    async fn receive(worker: &mut Worker) -> Result<Option<Self>, SandboxError> {
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
                    return storage::SnapshotStorage::new(&bytes).map(Self).map(Some).map_err(SandboxError::Snapshot);
                }
                other => return Err(SandboxError::Protocol(format!("{other:?} instead of a snapshot"))),
            }
        }
    }

    /// A separate descriptor for one worker, at offset 0.
    pub fn share(&self) -> Result<OwnedFd, SandboxError> {
        self.0.open().map_err(SandboxError::Snapshot)
    }
}
