//! The limits on what programs leave in the working folder. They are checked while a program runs
//! and at its end, since a short one can end before the first check.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::builtin::{FolderContent, MAX_ENTRIES};

use crate::disk::{DiskBounds, exhausted};

/// The interval between two checks of the folder's size.
const LOOK: Duration = Duration::from_millis(250);
/// A check may take at most this fraction of the time.
const PART: u32 = 4;
const MB: u64 = 1_000_000;

/// The working folder during one program.
pub struct WorkingFolder {
    folder: PathBuf,
    bounds: DiskBounds,
    before: Arc<FolderContent>,
}

impl WorkingFolder {
    /// Reads the folder before the program starts.
    pub async fn before(folder: &Path, bounds: DiskBounds) -> Result<Self, ToolFailure> {
        let before = read(folder).await?;
        Ok(Self { folder: folder.to_owned(), bounds, before: Arc::new(before) })
    }

    /// Waits until the folder holds too much.
    pub async fn exceeded(&self) -> ToolFailure {
        if !self.is_bounded() {
            return std::future::pending().await;
        }
        loop {
            let begun = Instant::now();
            if let Err(failure) = self.check_size().await {
                return failure;
            }
            tokio::time::sleep(LOOK.max(begun.elapsed() * PART)).await;
        }
    }

    /// Checks the size and the free space at the end of the program.
    pub async fn check(&self) -> Result<(), ToolFailure> {
        self.bounds.check(&self.folder).await?;
        if self.is_bounded() { self.check_size().await } else { Ok(()) }
    }

    /// A folder of the operator can hold more from the beginning. Then it is not counted.
    fn is_bounded(&self) -> bool {
        self.bounds.workdir > 0 && self.before.entries <= MAX_ENTRIES
    }

    async fn check_size(&self) -> Result<(), ToolFailure> {
        let now = read(&self.folder).await?;
        let most = self.bounds.workdir;
        if now.entries > MAX_ENTRIES {
            let message = format!("the working folder has more than {MAX_ENTRIES} files and folders");
            return Err(exhausted(message, "workdir_entries", MAX_ENTRIES as u64));
        }
        // A program can make room in a folder that is too full.
        if now.bytes <= most.max(self.before.bytes) {
            return Ok(());
        }
        let message = format!(
            "the working folder has {} MB, more than the {} MB that it may have (--workdir-mb); remove files there",
            now.bytes / MB,
            most / MB
        );
        Err(exhausted(message, "workdir_bytes", most))
    }

    /// Removes what appeared in the folder since the program started.
    pub async fn restore(self) {
        if self.before.entries > MAX_ENTRIES {
            return;
        }
        let folder = self.folder.clone();
        let removed = tokio::task::spawn_blocking(move || self.before.remove_newer(&self.folder)).await;
        if let Err(error) = removed.map_err(io::Error::other).flatten() {
            tracing::error!(folder = %folder.display(), %error, "files of a program that filled the disk stay");
        }
    }
}

async fn read(folder: &Path) -> Result<FolderContent, ToolFailure> {
    let path = folder.to_owned();
    let content = tokio::task::spawn_blocking(move || FolderContent::read(&path)).await;
    content.map_err(io::Error::other).flatten().map_err(|error| {
        let message = format!("the working folder cannot be measured: {error}");
        ToolFailure::new(ErrorCode::ResourceExhausted, message)
    })
}
