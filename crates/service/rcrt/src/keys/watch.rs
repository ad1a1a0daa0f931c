//! Detects changes of the keys in a folder.

use std::time::{Duration, SystemTime};

use super::ring::Keyring;
use parking_lot::Mutex;

/// The resolution of a folder's modification time: two changes within it can have the same time.
const STEP: Duration = Duration::from_secs(2);

/// Reads the keys again after the folder has changed. A check costs one `stat` of the folder.
pub(super) struct KeyWatcher {
    ring: Keyring,
    seen: Mutex<LoadedKeys>,
}

#[derive(Default)]
struct LoadedKeys {
    /// The folder's modification time, or `None` if a later change can have the same time.
    changed_at: Option<SystemTime>,
    keys: Vec<[u8; 32]>,
}

impl KeyWatcher {
    pub(super) fn new(ring: Keyring) -> Self {
        Self { ring, seen: Mutex::default() }
    }

    /// Reads the keys, the current one first.
    pub(super) fn load(&self) -> anyhow::Result<Vec<[u8; 32]>> {
        let changed_at = self.changed_at();
        let keys: Vec<[u8; 32]> = self.ring.load()?.into_iter().map(|(_, key)| key).collect();
        let mut seen = self.seen.lock();
        *seen = LoadedKeys { changed_at, keys: keys.clone() };
        Ok(keys)
    }

    /// Returns the keys if they changed since the last time. If they cannot be read, logs the error
    /// and keeps the known ones.
    pub(super) fn changed(&self) -> Option<Vec<[u8; 32]>> {
        let known = {
            let seen = self.seen.lock();
            if seen.changed_at.is_some() && seen.changed_at == self.changed_at() {
                return None;
            }
            seen.keys.clone()
        };
        match self.load() {
            Ok(keys) => (keys != known).then_some(keys),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "the keys cannot be read; the previous ones stay in use");
                None
            }
        }
    }

    /// Returns `None` while another change can have the same time.
    fn changed_at(&self) -> Option<SystemTime> {
        let changed_at = self.ring.folder().metadata().and_then(|found| found.modified()).ok()?;
        (changed_at.elapsed().ok()? > STEP).then_some(changed_at)
    }
}
