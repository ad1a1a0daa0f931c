//! Which agents exist, remembered for a few seconds: a token ends with its agent, and asking the database on every
//! request would double its work.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use breadcrumb::{Role, StoreError, Tenancy};
use uuid::Uuid;

const REMEMBERED_FOR: Duration = Duration::from_secs(3);
const MOST: usize = 4096;

/// Owner and agent.
type AgentId = (Uuid, Uuid);

struct Seen {
    at: Instant,
    /// `None`: not there.
    roles: Option<Vec<Role>>,
}

/// A bounded memory of agents and their roles; `None` for one that is not there.
pub struct KnownAgents {
    tenancy: Arc<dyn Tenancy>,
    seen: Mutex<HashMap<AgentId, Seen>>,
}

impl KnownAgents {
    pub fn new(tenancy: Arc<dyn Tenancy>) -> Self {
        Self { tenancy, seen: Mutex::default() }
    }

    /// The roles that the agent has now (or had at most three seconds ago).
    pub async fn roles(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Option<Vec<Role>>, StoreError> {
        if let Some(roles) = self.remembered(owner_id, agent_id) {
            return Ok(roles);
        }
        let asked = Instant::now();
        let roles = self.tenancy.agent(owner_id, agent_id).await?.map(|agent| agent.roles);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST {
            seen.retain(|_, seen| seen.at.elapsed() < REMEMBERED_FOR);
        }
        if seen.len() < MOST {
            seen.insert((owner_id, agent_id), Seen { at: asked, roles: roles.clone() });
        }
        Ok(roles)
    }

    /// Makes this server ask again: the agent was just deleted.
    pub fn forget(&self, owner_id: Uuid, agent_id: Uuid) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(&(owner_id, agent_id));
    }

    /// `None`: nothing recent is known.
    #[allow(clippy::option_option)] // The inner one is the answer as `roles` gives it.
    fn remembered(&self, owner_id: Uuid, agent_id: Uuid) -> Option<Option<Vec<Role>>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.get(&(owner_id, agent_id))?;
        (seen.at.elapsed() < REMEMBERED_FOR).then(|| seen.roles.clone())
    }
}
