//! Whether the keys of a folder have changed since the last check.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::ring::Keyring;

/// A folder's time counts in steps: two changes within one look like one.
const STEP: Duration = Duration::from_secs(2);

/// Reads the keys again once the folder has changed. That costs one look at the folder.
pub(super) struct KeyWatcher {
    ring: Keyring,
    seen: Mutex<LoadedKeys>,
}

#[derive(Default)]
struct LoadedKeys {
    /// When the folder had changed, if no later change can have the same time.
    changed_at: Option<SystemTime>,
    keys: Vec<[u8; 32]>,
}

impl KeyWatcher {
    pub(super) fn new(ring: Keyring) -> Self {
        Self { ring, seen: Mutex::default() }
    }

    /// The keys, the one in use first.
    pub(super) fn load(&self) -> anyhow::Result<Vec<[u8; 32]>> {
        let changed_at = self.changed_at();
        let keys: Vec<[u8; 32]> = self.ring.load()?.into_iter().map(|(_, key)| key).collect();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = LoadedKeys { changed_at, keys: keys.clone() };
        Ok(keys)
    }

    /// The keys, where they are others than the last time. What cannot be read is told, and the known ones stay.
    pub(super) fn changed(&self) -> Option<Vec<[u8; 32]>> {
        let known = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if seen.changed_at.is_some() && seen.changed_at == self.changed_at() {
                return None;
            }
            seen.keys.clone()
        };
        match self.load() {
            Ok(keys) => (keys != known).then_some(keys),
            Err(error) => {
                tracing::error!(error = format!("{error:#}"), "the keys cannot be read; those from before stay in use");
                None
            }
        }
    }

    /// `None` while a further change could have the same time.
    fn changed_at(&self) -> Option<SystemTime> {
        let changed_at = self.ring.folder().metadata().and_then(|found| found.modified()).ok()?;
        (changed_at.elapsed().ok()? > STEP).then_some(changed_at)
    }
}
