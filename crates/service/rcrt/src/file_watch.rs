//! Waits for changes of files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;

use crate::tool_file;

/// How often the files are checked. Polling also works on network drives and in containers, where
/// notifications of the kernel get lost.
const INTERVAL: Duration = Duration::from_millis(50);

/// In a large folder, checking takes at most one part in this many of the time, unless the interval
/// would be too long.
const SHARE: u32 = 20;
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// The size and the modification time of a file.
pub type Stamp = (u64, Option<SystemTime>);

/// The watched files that exist.
pub type Snapshot = BTreeMap<PathBuf, Stamp>;

/// Folders with everything below them that a set reads, and single files.
pub struct FileWatch {
    roots: Vec<PathBuf>,
    /// The state at the last check, and when it was first seen.
    last: Option<(Snapshot, Instant)>,
    handled: Option<Snapshot>,
}

impl FileWatch {
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots, last: None, handled: None }
    }

    /// Waits for a state that was not handled yet, and that lasts. Returns it, and when it was
    /// first seen. After an error, or if the state is not [handled](Self::handled), the next call
    /// waits for one interval and tries again.
    pub async fn changed(&mut self) -> anyhow::Result<(Snapshot, Instant)> {
        loop {
            let began = Instant::now();
            let now = snapshot(self.roots.clone()).await;
            tokio::time::sleep((began.elapsed() * SHARE).clamp(INTERVAL, MAX_INTERVAL)).await;
            if let Some(seen) = self.due(now?) {
                return Ok(seen);
            }
        }
    }

    /// An editor that saves by renaming removes the file for a moment, so a state must be the same
    /// at two checks.
    fn due(&mut self, now: Snapshot) -> Option<(Snapshot, Instant)> {
        match &self.last {
            Some((last, since)) if *last == now => (self.handled.as_ref() != Some(&now)).then_some((now, *since)),
            _ => {
                self.last = Some((now, Instant::now()));
                None
            }
        }
    }

    /// Whether the files are still in this state.
    pub async fn is_current(&self, state: &Snapshot) -> anyhow::Result<bool> {
        Ok(snapshot(self.roots.clone()).await? == *state)
    }

    pub fn handled(&mut self, state: Snapshot) {
        self.handled = Some(state);
    }
}

async fn snapshot(roots: Vec<PathBuf>) -> anyhow::Result<Snapshot> {
    let read = move || {
        let mut files = Snapshot::new();
        for root in roots {
            match root.metadata() {
                Ok(found) if found.is_dir() => {
                    for path in tool_file::files_below(&root)? {
                        // A file that was removed since the folder was read shows in the next
                        // snapshot.
                        let Ok(found) = path.metadata() else { continue };
                        files.insert(path, (found.len(), found.modified().ok()));
                    }
                }
                Ok(found) => drop(files.insert(root, (found.len(), found.modified().ok()))),
                Err(_) => {}
            }
        }
        Ok(files)
    };
    tokio::task::spawn_blocking(read).await.context("reading the files failed")?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Snapshot {
        names.iter().map(|name| (PathBuf::from(name), (1, None))).collect()
    }

    #[test]
    fn a_state_is_due_once_and_only_if_it_lasts() {
        let mut watch = FileWatch::new(Vec::new());
        let mut is_due = |now: &Snapshot| {
            let due = watch.due(now.clone());
            if let Some((state, _)) = &due {
                watch.handled(state.clone());
            }
            due.is_some()
        };
        let (both, one) = (files(&["a.json", "b.json"]), files(&["a.json"]));
        assert!(!is_due(&both));
        assert!(is_due(&both));
        assert!(!is_due(&both));
        // A file that is replaced by renaming another is absent at one check.
        assert!(!is_due(&one));
        assert!(!is_due(&both) && !is_due(&both));
        assert!(!is_due(&one) && is_due(&one));
    }

    #[test]
    fn a_state_that_was_not_handled_stays_due() {
        let mut watch = FileWatch::new(Vec::new());
        let now = files(&["a.json"]);
        assert!(watch.due(now.clone()).is_none());
        assert!(watch.due(now.clone()).is_some() && watch.due(now).is_some());
    }
}
