//! What programs may take of the disk. The database is often on the same one, so some of it stays free whatever they do.

use std::io;
use std::path::Path;
use std::time::Duration;

use breadcrumb::{ErrorCode, ToolFailure};
use nix::sys::statvfs::statvfs;
use serde_json::json;

/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(250);
const MB: u64 = 1_000_000;

/// Bounds in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskBounds {
    /// What one set of Python packages may take.
    pub packages_set: u64,
    /// What all sets may take together, with those that are being installed.
    pub packages_total: u64,
    /// What must be left on the disk: with less no program starts, and one that runs is ended. 0 for no such bound.
    pub min_free: u64,
}

impl Default for DiskBounds {
    fn default() -> Self {
        Self { packages_set: 2_000 * MB, packages_total: 8_000 * MB, min_free: 500 * MB }
    }
}

impl DiskBounds {
    /// Why nothing more may be written to the disk of `folder`, if so. Blocks.
    pub fn too_little_left(&self, folder: &Path) -> io::Result<Option<ToolFailure>> {
        if self.min_free == 0 {
            return Ok(None);
        }
        let disk = statvfs(folder).map_err(io::Error::from)?;
        // Some systems count blocks in 32 bits.
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

    /// The same without blocking.
    pub async fn check(&self, folder: &Path) -> Result<(), ToolFailure> {
        let (bounds, path) = (*self, folder.to_owned());
        let looked = tokio::task::spawn_blocking(move || bounds.too_little_left(&path)).await;
        match looked.map_err(io::Error::other).flatten() {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(failure),
            Err(error) => {
                let message = format!("the disk of {} cannot be looked at: {error}", folder.display());
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, message))
            }
        }
    }

    /// Returns when too little is left on the disk of `folder`.
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

/// `ResourceExhausted`, for a bound of this many bytes.
pub fn exhausted(message: String, limit: &str, allowed: u64) -> ToolFailure {
    ToolFailure::new(ErrorCode::ResourceExhausted, message).with_details(json!({"limit": limit, "allowed": allowed}))
}
