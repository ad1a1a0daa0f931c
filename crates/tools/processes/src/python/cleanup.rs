//! Removes folders of unfinished installations, including those of cancelled calls.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

const PREFIX: &str = "unfinished-";
/// The installer of a cancelled call is exiting and may still write for a moment.
const AGAIN: Duration = Duration::from_millis(50);
const TRIES: u32 = 100;

pub fn unfinished_name(id: Uuid) -> String {
    format!("{PREFIX}{id}")
}

pub fn is_unfinished(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Removes folders in the background.
#[derive(Default)]
pub struct Cleanup {
    tasks: TaskTracker,
}

impl Cleanup {
    /// The folder is removed when the result is dropped, unless it was renamed by then.
    pub fn unfinished(&self, folder: PathBuf) -> Unfinished {
        Unfinished { folder, tasks: self.tasks.clone() }
    }
}

pub struct Unfinished {
    folder: PathBuf,
    tasks: TaskTracker,
}

impl Unfinished {
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let folder = std::mem::take(&mut self.folder);
        // Without a runtime, a later runner removes it.
        if let Ok(runtime) = Handle::try_current() {
            self.tasks.spawn_on(remove(folder), &runtime);
        }
    }
}

async fn remove(folder: PathBuf) {
    for _ in 0..TRIES {
        let path = folder.clone();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(path)).await;
        match removed {
            Ok(Err(error)) if error.kind() != io::ErrorKind::NotFound => tokio::time::sleep(AGAIN).await,
            _ => return,
        }
    }
    tracing::warn!(folder = %folder.display(), "an unfinished Python environment cannot be removed");
}
