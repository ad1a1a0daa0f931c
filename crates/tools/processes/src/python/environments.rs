//! Environments with packages: one for each set, created once by one installer at a time, then only
//! read. A folder with a final name is complete, because it is created under another name and
//! renamed at the end.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::ToolCall;
use rcrt_jail::command::{Jail, make_folder};
use uuid::Uuid;

use super::cleanup::{Cleanup, Unfinished, unfinished_name};
use super::disk_quota::DiskQuota;
use super::installing::install;
use super::interpreter::Interpreter;
use super::packages::PackageSet;
use crate::disk::DiskBounds;

/// The path of an environment in the jail. Its programs contain this path, so it is the same during
/// the installation.
pub const FOLDER: &str = "/run/python";

/// The interpreter of an environment, in the jail.
pub fn program() -> PathBuf {
    Path::new(FOLDER).join("bin/python")
}

/// An installed environment. It is not removed while this exists.
pub struct Environment {
    pub folder: PathBuf,
    pub is_new: bool,
    _used: Arc<InstallLock>,
}

pub struct Environments {
    folder: PathBuf,
    /// For each set in use: the lock of its installer.
    install_locks: Mutex<HashMap<String, Weak<InstallLock>>>,
    cleanup: Cleanup,
    disk_quota: DiskQuota,
}

type InstallLock = tokio::sync::Mutex<()>;

impl Environments {
    pub fn new(folder: PathBuf, bounds: DiskBounds) -> Self {
        let disk_quota = DiskQuota::new(folder.clone(), bounds);
        Self { folder, install_locks: Mutex::default(), cleanup: Cleanup::default(), disk_quota }
    }

    /// Returns the environment of this set. Installs it if it does not exist.
    pub async fn get(
        &self,
        packages: &PackageSet,
        interpreter: &Interpreter,
        jail: &Jail,
        call: &ToolCall,
    ) -> Result<Environment, ToolFailure> {
        let key = packages.key(&interpreter.identity);
        let folder = self.folder.join(&key);
        let install_lock = self.install_lock(&key);
        let environment = |is_new| Environment { folder: folder.clone(), is_new, _used: install_lock.clone() };
        let installing = install_lock.lock().await;
        self.check_folder().await?;
        if used(&folder) {
            return Ok(environment(false));
        }
        call.progress.report(None, &format!("installing {}", packages.names().join(", ")));
        let unfinished = self.begin().await?;
        self.disk_quota.check(Some(unfinished.folder()), self.in_use()).await?;
        tokio::select! {
            installed = install(unfinished.folder(), packages, interpreter, jail, &call.limits, &self.disk_quota) => installed?,
            failure = self.disk_quota.exceeded(unfinished.folder(), || self.in_use()) => return Err(failure),
        }
        // Checks once more, because the folder may have grown since the last check.
        self.disk_quota.check(Some(unfinished.folder()), self.in_use()).await?;
        let (made, kept) = (unfinished.folder().to_owned(), folder.clone());
        // Another process may have been faster. Its environment is equivalent.
        let renamed = move || {
            DiskQuota::note(&made)?;
            fs::rename(made, &kept).or_else(|error| if kept.is_dir() { Ok(()) } else { Err(error) })
        };
        tokio::task::spawn_blocking(renamed).await.map_err(std::io::Error::other).flatten().map_err(|e| cannot(&e))?;
        if let Err(failure) = self.disk_quota.check(None, self.in_use()).await {
            tracing::debug!(%failure, "Python environments exceed their size limit");
        }
        drop(installing);
        Ok(environment(true))
    }

    fn install_lock(&self, key: &str) -> Arc<InstallLock> {
        let mut install_locks = self.install_locks.lock();
        install_locks.retain(|_, install_lock| install_lock.strong_count() > 0);
        let install_lock = install_locks.get(key).and_then(Weak::upgrade).unwrap_or_default();
        install_locks.insert(key.to_owned(), Arc::downgrade(&install_lock));
        install_lock
    }

    /// Programs in it are run, so no other user may be able to change it.
    async fn check_folder(&self) -> Result<(), ToolFailure> {
        let folder = self.folder.clone();
        let checked =
            tokio::task::spawn_blocking(move || rcrt_wheel::make_private(&folder).map_err(std::io::Error::other));
        let checked = checked.await.map_err(std::io::Error::other).flatten();
        checked.map(drop).map_err(|error| cannot(&error))
    }

    async fn begin(&self) -> Result<Unfinished, ToolFailure> {
        let folder = self.folder.join(unfinished_name(Uuid::new_v4()));
        let made = folder.clone();
        let making = tokio::task::spawn_blocking(move || make_folder(&made));
        making.await.map_err(std::io::Error::other).flatten().map_err(|error| cannot(&error))?;
        Ok(self.cleanup.unfinished(folder))
    }

    /// The sets that calls in this process use or install.
    fn in_use(&self) -> Vec<String> {
        let install_locks = self.install_locks.lock();
        install_locks
            .iter()
            .filter(|(_, install_lock)| install_lock.strong_count() > 0)
            .map(|(key, _)| key.clone())
            .collect()
    }
}

fn cannot(error: &std::io::Error) -> ToolFailure {
    let message = format!("cannot create an environment for the packages: {error}");
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
}

/// Marks it as used now. Returns false if it does not exist.
fn used(folder: &Path) -> bool {
    let now = fs::FileTimes::new().set_modified(SystemTime::now());
    fs::File::open(folder).is_ok_and(|opened| opened.set_times(now).is_ok() || folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_set_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        fs::File::open(folder.path()).unwrap().set_times(long_ago).unwrap();
        assert!(used(folder.path()) && !used(&folder.path().join("none")));
        assert!(fs::metadata(folder.path()).unwrap().modified().unwrap() > SystemTime::UNIX_EPOCH);
    }
}
