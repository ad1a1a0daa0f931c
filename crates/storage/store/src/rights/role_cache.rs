//! Whether the agents on whose behalf runners act see all records of their tenant. Cached for a few
//! seconds, so that a tool's reads query it at most once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

const CACHE_TTL: Duration = Duration::from_secs(3);
const MOST: usize = 4096;

/// Tenant and agent.
type Key = (Uuid, Uuid);

#[derive(Default)]
pub(crate) struct RoleCache {
    known: Mutex<HashMap<Key, (Instant, bool)>>,
}

impl RoleCache {
    fn locked(&self) -> MutexGuard<'_, HashMap<Key, (Instant, bool)>> {
        self.known.lock()
    }

    pub(crate) fn get(&self, key: Key) -> Option<bool> {
        self.locked().get(&key).filter(|(at, _)| at.elapsed() < CACHE_TTL).map(|(_, sees_all)| *sees_all)
    }

    pub(crate) fn insert(&self, key: Key, sees_all: bool) {
        let mut known = self.locked();
        if known.len() >= MOST {
            known.retain(|_, (at, _)| at.elapsed() < CACHE_TTL);
        }
        if known.len() < MOST {
            known.insert(key, (Instant::now(), sees_all));
        }
    }
}
