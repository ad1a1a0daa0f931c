//! Which agents exist and which of their tokens are revoked, cached for a few seconds: a token ends
//! with its agent, and a query on every request would double the database's work.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use breadcrumb::{AgentStatus, StoreError, Tenancy};
use tokio::sync::watch;
use uuid::Uuid;

const REMEMBERED_FOR: Duration = Duration::from_secs(3);
const MOST: usize = 4096;

/// Owner and agent.
type AgentId = (Uuid, Uuid);

struct CachedAgent {
    at: Instant,
    standing: Arc<AgentStatus>,
}

/// A bounded memory of agents.
pub struct AgentCache {
    tenancy: Arc<dyn Tenancy>,
    seen: Mutex<HashMap<AgentId, CachedAgent>>,
    /// When a tenant was seen, and whether it was there.
    tenants: Mutex<HashMap<Uuid, (Instant, bool)>>,
    /// How often something was forgotten, because this server changed it.
    changes: watch::Sender<u64>,
}

impl AgentCache {
    pub fn new(tenancy: Arc<dyn Tenancy>) -> Self {
        Self { tenancy, seen: Mutex::default(), tenants: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// How the agent stands now (or stood at most three seconds ago).
    pub async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Arc<AgentStatus>, StoreError> {
        if let Some(standing) = self.remembered(owner_id, agent_id) {
            return Ok(standing);
        }
        let (asked, changes) = (Instant::now(), *self.changes.borrow());
        let standing = Arc::new(self.tenancy.agent_status(owner_id, agent_id).await?);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST {
            seen.retain(|_, seen| seen.at.elapsed() < REMEMBERED_FOR);
        }
        // What was changed while it was asked for is asked for again.
        if seen.len() < MOST && changes == *self.changes.borrow() {
            seen.insert((owner_id, agent_id), CachedAgent { at: asked, standing: standing.clone() });
        }
        Ok(standing)
    }

    /// Whether the tenant is there (or was at most three seconds ago).
    pub async fn has_tenant(&self, id: Uuid) -> Result<bool, StoreError> {
        let seen = self.tenants.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied();
        if let Some((at, is_there)) = seen
            && at.elapsed() < REMEMBERED_FOR
        {
            return Ok(is_there);
        }
        let (asked, changes) = (Instant::now(), *self.changes.borrow());
        let is_there = self.tenancy.tenant(id).await?.is_some();
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.retain(|_, (at, _)| at.elapsed() < REMEMBERED_FOR);
        if tenants.len() < MOST && changes == *self.changes.borrow() {
            tenants.insert(id, (asked, is_there));
        }
        Ok(is_there)
    }

    /// Makes this server ask again: the agent was just changed or deleted, or tokens of it were revoked.
    pub fn forget(&self, owner_id: Uuid, agent_id: Uuid) {
        self.change(|| {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(&(owner_id, agent_id));
        });
    }

    /// The same for a tenant, with all its agents.
    pub fn forget_tenant(&self, id: Uuid) {
        self.change(|| {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).retain(|(owner_id, _), _| *owner_id != id);
            self.tenants.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
    }

    /// Nothing that was asked for before is remembered after, and whoever is told finds it forgotten.
    fn change(&self, forget: impl FnOnce()) {
        self.changes.send_if_modified(|changes| {
            *changes += 1;
            false
        });
        forget();
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Changes whenever this server changed an agent or a tenant.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// `None`: nothing recent is known.
    fn remembered(&self, owner_id: Uuid, agent_id: Uuid) -> Option<Arc<AgentStatus>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.get(&(owner_id, agent_id))?;
        (seen.at.elapsed() < REMEMBERED_FOR).then(|| seen.standing.clone())
    }
}
