//! Environments with packages: one for each set, made once, by one installer at a time, and then only read. A folder of
//! this name is whole, since it is made under another name and renamed at the end.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use breadcrumb::{ErrorCode, ToolFailure};
use executors::ToolCall;
use jail::command::Jail;
use uuid::Uuid;

use super::cleanup::{Cleanup, Unfinished, unfinished_name};
use super::installing::install;
use super::interpreter::Interpreter;
use super::packages::PackageSet;
use super::room::Room;
use crate::disk::DiskBounds;
use crate::workshop::make_folder;

/// Where an environment is in the jail. Programs in it name this place, so it is the same when it is made.
pub const FOLDER: &str = "/run/python";

/// The interpreter of an environment, in the jail.
pub fn program() -> PathBuf {
    Path::new(FOLDER).join("bin/python")
}

/// One that is there to be used. It is not removed meanwhile.
pub struct Environment {
    pub folder: PathBuf,
    pub is_new: bool,
    _used: Arc<Turn>,
}

pub struct Environments {
    folder: PathBuf,
    /// Of each set that is in use: whose turn it is to install it.
    turns: Mutex<HashMap<String, Weak<Turn>>>,
    cleanup: Cleanup,
    room: Room,
}

type Turn = tokio::sync::Mutex<()>;

impl Environments {
    pub fn new(folder: PathBuf, bounds: DiskBounds) -> Self {
        let room = Room::new(folder.clone(), bounds);
        Self { folder, turns: Mutex::default(), cleanup: Cleanup::default(), room }
    }

    /// The environment of this set, installed now if it is not there.
    pub async fn get(
        &self,
        packages: &PackageSet,
        interpreter: &Interpreter,
        jail: &Jail,
        call: &ToolCall,
    ) -> Result<Environment, ToolFailure> {
        let key = packages.key(&interpreter.identity);
        let folder = self.folder.join(&key);
        let turn = self.turn(&key);
        let environment = |is_new| Environment { folder: folder.clone(), is_new, _used: turn.clone() };
        let turn_taken = turn.lock().await;
        self.check_folder().await?;
        if used(&folder) {
            return Ok(environment(false));
        }
        call.progress.report(None, &format!("installing {}", packages.names().join(", ")));
        let unfinished = self.begin().await?;
        self.room.check(Some(unfinished.folder()), self.in_use()).await?;
        tokio::select! {
            installed = install(unfinished.folder(), packages, interpreter, jail, &call.limits, &self.room) => installed?,
            failure = self.room.exceeded(unfinished.folder(), || self.in_use()) => return Err(failure),
        }
        // What came between the last look and the end.
        self.room.check(Some(unfinished.folder()), self.in_use()).await?;
        let (made, kept) = (unfinished.folder().to_owned(), folder.clone());
        // Another process may have been faster: what it made is as good.
        let renamed = move || {
            Room::note(&made)?;
            fs::rename(made, &kept).or_else(|error| if kept.is_dir() { Ok(()) } else { Err(error) })
        };
        tokio::task::spawn_blocking(renamed).await.map_err(std::io::Error::other).flatten().map_err(|e| cannot(&e))?;
        if let Err(failure) = self.room.check(None, self.in_use()).await {
            tracing::debug!(%failure, "Python environments take more than they may");
        }
        drop(turn_taken);
        Ok(environment(true))
    }

    fn turn(&self, key: &str) -> Arc<Turn> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = turns.get(key).and_then(Weak::upgrade).unwrap_or_default();
        turns.insert(key.to_owned(), Arc::downgrade(&turn));
        turn
    }

    /// Programs in it are run, so it must be nobody else's to change.
    async fn check_folder(&self) -> Result<(), ToolFailure> {
        let folder = self.folder.clone();
        let checked = tokio::task::spawn_blocking(move || wheel::make_private(&folder).map_err(std::io::Error::other));
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

    /// The sets that calls of this process use or install.
    fn in_use(&self) -> Vec<String> {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.iter().filter(|(_, turn)| turn.strong_count() > 0).map(|(key, _)| key.clone()).collect()
    }
}

fn cannot(error: &std::io::Error) -> ToolFailure {
    let message = format!("an environment for the packages cannot be made: {error}");
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
}

/// Marks it as used now; false if it is not there.
fn used(folder: &Path) -> bool {
    let now = fs::FileTimes::new().set_modified(SystemTime::now());
    fs::File::open(folder).is_ok_and(|opened| opened.set_times(now).is_ok() || folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_is_used_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        fs::File::open(folder.path()).unwrap().set_times(long_ago).unwrap();
        assert!(used(folder.path()) && !used(&folder.path().join("none")));
        assert!(fs::metadata(folder.path()).unwrap().modified().unwrap() > SystemTime::UNIX_EPOCH);
    }
}
