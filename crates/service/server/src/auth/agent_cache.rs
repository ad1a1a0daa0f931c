//! Caches for a second which agents exist and which of their tokens are revoked. A token is
//! invalid without its agent, but a query for each request would double the database's work.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rcrt_breadcrumb::{AgentStatus, StoreError, Tenancy};
use tokio::sync::{OnceCell, watch};
use uuid::Uuid;

/// How long another server may not know of a change.
const CACHE_TTL: Duration = Duration::from_secs(1);
const MOST: usize = 4096;

/// Tenant and agent.
type AgentId = (Uuid, Uuid);

/// One look-up. Requests that come while it runs get its result, also if that is an error: under
/// load many come at once when an entry ends.
struct LookUp {
    at: Instant,
    status: OnceCell<Result<Arc<AgentStatus>, StoreError>>,
}

/// A bounded cache of agents.
pub struct AgentCache {
    tenancy: Arc<dyn Tenancy>,
    seen: Mutex<HashMap<AgentId, Arc<LookUp>>>,
    /// When a tenant was looked up, and whether it existed.
    tenants: Mutex<HashMap<Uuid, (Instant, bool)>>,
    /// Counts the entries that were removed because this server changed them.
    changes: watch::Sender<u64>,
}

impl AgentCache {
    pub fn new(tenancy: Arc<dyn Tenancy>) -> Self {
        Self { tenancy, seen: Mutex::default(), tenants: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// The agent's status, at most a second old.
    pub async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Arc<AgentStatus>, StoreError> {
        let looked_up = self.look_up((owner_id, agent_id));
        let look_up = || async {
            let status = self.tenancy.agent_status(owner_id, agent_id).await.map(Arc::new);
            if status.is_err() {
                self.end((owner_id, agent_id), &looked_up);
            }
            status
        };
        looked_up.status.get_or_init(look_up).await.clone()
    }

    /// The next request looks the agent up again.
    fn end(&self, agent: AgentId, failed: &Arc<LookUp>) {
        let mut seen = self.seen.lock();
        if seen.get(&agent).is_some_and(|present| Arc::ptr_eq(present, failed)) {
            seen.remove(&agent);
        }
    }

    /// The present look-up of this agent. If this server changes an agent, its look-up is removed,
    /// also while it runs.
    fn look_up(&self, agent: AgentId) -> Arc<LookUp> {
        let mut seen = self.seen.lock();
        if let Some(looked_up) = seen.get(&agent).filter(|seen| seen.at.elapsed() < CACHE_TTL) {
            return looked_up.clone();
        }
        if seen.len() >= MOST {
            seen.retain(|_, seen| seen.at.elapsed() < CACHE_TTL);
        }
        let new = Arc::new(LookUp { at: Instant::now(), status: OnceCell::new() });
        if seen.len() < MOST {
            seen.insert(agent, new.clone());
        }
        new
    }

    /// Whether the tenant exists, or did at most a second ago.
    pub async fn has_tenant(&self, id: Uuid) -> Result<bool, StoreError> {
        let seen = self.tenants.lock().get(&id).copied();
        if let Some((at, is_there)) = seen
            && at.elapsed() < CACHE_TTL
        {
            return Ok(is_there);
        }
        let (asked, changes) = (Instant::now(), *self.changes.borrow());
        let is_there = self.tenancy.tenant(id).await?.is_some();
        let mut tenants = self.tenants.lock();
        tenants.retain(|_, (at, _)| at.elapsed() < CACHE_TTL);
        if tenants.len() < MOST && changes == *self.changes.borrow() {
            tenants.insert(id, (asked, is_there));
        }
        Ok(is_there)
    }

    /// Removes the agent's entry, because the agent was changed or deleted, or tokens of it were
    /// revoked.
    pub fn forget(&self, owner_id: Uuid, agent_id: Uuid) {
        self.change(|| {
            self.seen.lock().remove(&(owner_id, agent_id));
        });
    }

    /// Removes the entries of a tenant and all its agents.
    pub fn forget_tenant(&self, id: Uuid) {
        self.change(|| {
            self.seen.lock().retain(|(owner_id, _), _| *owner_id != id);
            self.tenants.lock().remove(&id);
        });
    }

    /// Counts before and after the removal: a query that began earlier is not cached, and a
    /// subscriber that is notified finds the entry removed.
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
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use async_trait::async_trait;
    use futures::future::join_all;
    use rcrt_breadcrumb::TenancyDecorator;

    use super::*;

    #[derive(Default)]
    struct Failing {
        reads: AtomicU64,
    }

    #[async_trait]
    impl TenancyDecorator for Failing {
        fn inner(&self) -> &dyn Tenancy {
            unreachable!("only the state of agents is read")
        }

        async fn agent_status(&self, _owner_id: Uuid, _agent_id: Uuid) -> Result<AgentStatus, StoreError> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Err(StoreError::Unavailable("the database does not respond".into()))
        }
    }

    #[tokio::test]
    async fn requests_at_the_same_time_get_the_error_of_one_look_up() {
        let store = Arc::new(Failing::default());
        let cache = AgentCache::new(store.clone());
        let agent = (Uuid::now_v7(), Uuid::now_v7());
        for reads in 1..=2 {
            let statuses = join_all((0..10).map(|_| cache.agent_status(agent.0, agent.1))).await;
            assert!(statuses.iter().all(Result::is_err));
            assert_eq!(store.reads.load(Ordering::Relaxed), reads);
        }
    }
}
