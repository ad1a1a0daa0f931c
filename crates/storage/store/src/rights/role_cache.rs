//! The rights of agents that sent no token of their own: of those on whose behalf runners act, and
//! the allow lists of callers. Cached for a second, so that a tool's reads rarely query them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rcrt_breadcrumb::AllowedTools;
use uuid::Uuid;

/// How long another process may not know of a change.
const CACHE_TTL: Duration = Duration::from_secs(1);
const MOST: usize = 4096;

/// Tenant and agent.
type Key = (Uuid, Uuid);

#[derive(Debug, Clone, Default)]
pub(crate) struct AgentRights {
    /// Whether it sees all records of its tenant.
    pub(crate) sees_all: bool,
    pub(crate) is_curator: bool,
    pub(crate) writes_only_requests: bool,
    pub(crate) reads_only_own_calls: bool,
    /// `None`: every tool.
    pub(crate) allowed_tools: Option<AllowedTools>,
}

#[derive(Default)]
pub(crate) struct RoleCache {
    known: Mutex<HashMap<Key, (Instant, AgentRights)>>,
}

impl RoleCache {
    pub(crate) fn get(&self, key: Key) -> Option<AgentRights> {
        self.known.lock().get(&key).filter(|(at, _)| at.elapsed() < CACHE_TTL).map(|(_, rights)| rights.clone())
    }

    /// `asked`: when the query for it began.
    pub(crate) fn insert(&self, key: Key, asked: Instant, rights: AgentRights) {
        let mut known = self.known.lock();
        if known.len() >= MOST {
            known.retain(|_, (at, _)| at.elapsed() < CACHE_TTL);
        }
        if known.len() < MOST {
            known.insert(key, (asked, rights));
        }
    }

    /// The agent was changed by this process.
    pub(crate) fn forget(&self, key: Key) {
        self.known.lock().remove(&key);
    }
}
