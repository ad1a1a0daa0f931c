//! Environments with packages: one for each set, made once, by one installer at a time, and then only read. A folder of
//! this name is whole, since it is made under another name and renamed at the end.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use breadcrumb::{ErrorCode, ToolFailure};
use executors::ToolCall;
use jail::command::Jail;
use uuid::Uuid;

use super::cleanup::{Cleanup, Unfinished, is_unfinished, unfinished_name};
use super::installing::install;
use super::interpreter::Interpreter;
use super::packages::PackageSet;
use crate::workshop::make_folder;

/// Where an environment is in the jail. Programs in it name this place, so it is the same when it is made.
pub const FOLDER: &str = "/run/python";
/// So many sets are kept; the one that was not used for longest goes first.
const MOST: usize = 50;
/// An installation that was begun longer ago than any call lasts was left by a runner that died.
const ABANDONED: Duration = Duration::from_hours(1);

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
}

type Turn = tokio::sync::Mutex<()>;

impl Environments {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, turns: Mutex::default(), cleanup: Cleanup::default() }
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
        if used(&folder) {
            return Ok(environment(false));
        }
        call.progress.report(None, &format!("installing {}", packages.names().join(", ")));
        let unfinished = self.begin().await?;
        install(unfinished.folder(), packages, interpreter, jail, &call.limits).await?;
        let (made, kept) = (unfinished.folder().to_owned(), folder.clone());
        // Another process may have been faster: what it made is as good.
        let renamed = move || fs::rename(made, &kept).or_else(|error| if kept.is_dir() { Ok(()) } else { Err(error) });
        tokio::task::spawn_blocking(renamed).await.map_err(std::io::Error::other).flatten().map_err(|e| cannot(&e))?;
        self.forget_old_ones().await;
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

    async fn begin(&self) -> Result<Unfinished, ToolFailure> {
        let folder = self.folder.join(unfinished_name(Uuid::new_v4()));
        let made = folder.clone();
        let making = tokio::task::spawn_blocking(move || make_folder(&made));
        making.await.map_err(std::io::Error::other).flatten().map_err(|error| cannot(&error))?;
        Ok(self.cleanup.unfinished(folder))
    }

    /// Removes what dead runners left, and the sets that were not used for longest, as far as nobody uses them.
    async fn forget_old_ones(&self) {
        let in_use: Vec<String> = {
            let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.iter().filter(|(_, turn)| turn.strong_count() > 0).map(|(key, _)| key.clone()).collect()
        };
        let folder = self.folder.clone();
        let forgotten = tokio::task::spawn_blocking(move || forget(&folder, &in_use)).await;
        if let Ok(Err(error)) = forgotten {
            tracing::warn!(%error, "old Python environments cannot be removed");
        }
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

fn forget(folder: &Path, in_use: &[String]) -> std::io::Result<()> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, used) = (entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.modified()?);
        if is_unfinished(&name) {
            if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                fs::remove_dir_all(entry.path())?;
            }
        } else if !in_use.contains(&name) {
            kept.push((used, entry.path()));
        }
    }
    kept.sort();
    let excess = (kept.len() + in_use.len()).saturating_sub(MOST);
    for (_, path) in kept.into_iter().take(excess) {
        // Under its own name it is whole or not there.
        let aside = folder.join(unfinished_name(Uuid::new_v4()));
        fs::rename(path, &aside)?;
        fs::remove_dir_all(aside)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_that_nobody_used_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for number in 0..=MOST as u64 + 1 {
            let path = folder.path().join(format!("set{number:03}"));
            fs::create_dir(&path).unwrap();
            let times = fs::FileTimes::new().set_modified(at(number));
            fs::File::open(path).unwrap().set_times(times).unwrap();
        }
        let (left, begun) =
            (folder.path().join(unfinished_name(Uuid::new_v4())), folder.path().join(unfinished_name(Uuid::new_v4())));
        fs::create_dir(&left).unwrap();
        fs::File::open(&left).unwrap().set_times(fs::FileTimes::new().set_modified(at(0))).unwrap();
        fs::create_dir(&begun).unwrap();
        forget(folder.path(), &["set000".into()]).unwrap();
        assert!(!left.exists() && begun.exists());
        let is_there = |number: u64| folder.path().join(format!("set{number:03}")).exists();
        assert!(is_there(0) && !is_there(1) && !is_there(2) && is_there(3));
        assert!(used(&folder.path().join("set003")) && !used(&folder.path().join("none")));
        forget(folder.path(), &[]).unwrap();
        assert!(is_there(0));
    }
}
