//! Limits on the disk space of programs. The database is often on the same disk, so some space
//! always stays free.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use serde_json::json;

/// The interval between two checks of the free space: short enough that a program cannot write the
/// default of `min_free` meanwhile.
const LOOK: Duration = Duration::from_millis(50);
const MB: u64 = 1_000_000;

/// Limits in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskBounds {
    /// The most bytes of one set of Python packages.
    pub packages_set: u64,
    /// The most bytes of all sets together, including those that are being installed.
    pub packages_total: u64,
    /// The most bytes of the working folder. 0: no limit.
    pub workdir: u64,
    /// The bytes that must stay free on the disk. With less, no program starts, and running
    /// programs are terminated. 0: no limit.
    pub min_free: u64,
}

impl Default for DiskBounds {
    fn default() -> Self {
        Self { packages_set: 2_000 * MB, packages_total: 8_000 * MB, workdir: 10_000 * MB, min_free: 500 * MB }
    }
}

impl DiskBounds {
    /// Returns the failure if the disk of `folder` has too little space left. Blocks.
    pub fn too_little_left(&self, folder: &Path) -> io::Result<Option<ToolFailure>> {
        if self.min_free == 0 {
            return Ok(None);
        }
        let disk = statvfs(folder).map_err(io::Error::from)?;
        // On some systems block counts are 32 bits.
        #[allow(clippy::useless_conversion)]
        let free = u64::from(disk.blocks_available()).saturating_mul(disk.fragment_size());
        Ok((free < self.min_free).then(|| {
            let message = format!(
                "the disk has {} MB left, and programs must leave {} MB of it free (--min-free-disk-mb)",
                free / MB,
                self.min_free / MB
            );
            exhausted(message, "free_disk_bytes", self.min_free).retryable(true)
        }))
    }

    /// Like [`Self::too_little_left`], without blocking.
    pub async fn check(&self, folder: &Path) -> Result<(), ToolFailure> {
        let (bounds, path) = (*self, folder.to_owned());
        let looked = tokio::task::spawn_blocking(move || bounds.too_little_left(&path)).await;
        match looked.map_err(io::Error::other).flatten() {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(failure),
            Err(error) => {
                let message = format!("cannot read the free disk space of {}: {error}", folder.display());
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, message))
            }
        }
    }

    /// Waits until too little space is left on the disk of `folder`.
    pub async fn ran_low(&self, folder: &Path) -> ToolFailure {
        if self.min_free == 0 {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(failure) = self.check(folder).await {
                return failure;
            }
        }
    }
}

/// `ResourceExhausted`, for a limit of this many bytes.
pub fn exhausted(message: String, limit: &str, allowed: u64) -> ToolFailure {
    ToolFailure::new(ErrorCode::ResourceExhausted, message).with_details(json!({"limit": limit, "allowed": allowed}))
}
