//! Limits the open event streams by tenant and by agent, so that neither takes all of the server's
//! connections.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use uuid::Uuid;

use crate::{metrics::OpenStream, problem::Problem};

/// The bounds of event streams, and how they speak.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Open at once in one tenant.
    pub most_per_tenant: usize,
    /// Open at once by one agent.
    pub most_per_agent: usize,
    /// How often a stream says that it lives. Clients take one that is silent for three times 15 seconds for dead.
    pub ping_every: Duration,
    /// Tells a new record as `breadcrumb.updated`, as RCRT does: some of its clients listen for nothing else. Not on
    /// streams that ask for `all`.
    pub new_as_updated: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { most_per_tenant: 2000, most_per_agent: 500, ping_every: Duration::from_secs(15), new_as_updated: false }
    }
}

/// The streams that are open.
#[derive(Default)]
pub struct Streams {
    /// By tenant, then by agent.
    open: Mutex<HashMap<Uuid, HashMap<Uuid, usize>>>,
}

impl Streams {
    /// A permit for one more stream, until it is dropped.
    pub fn acquire(
        self: &Arc<Self>,
        options: &StreamOptions,
        owner_id: Uuid,
        agent_id: Uuid,
    ) -> Result<StreamPermit, Problem> {
        let mut open = self.locked();
        let agents = open.entry(owner_id).or_default();
        let (of_agent, of_tenant) =
            (agents.get(&agent_id).copied().unwrap_or_default(), agents.values().sum::<usize>());
        if of_agent >= options.most_per_agent {
            return Err(Problem::too_many_streams("agent", options.most_per_agent));
        }
        if of_tenant >= options.most_per_tenant {
            return Err(Problem::too_many_streams("tenant", options.most_per_tenant));
        }
        *agents.entry(agent_id).or_default() += 1;
        drop(open);
        Ok(StreamPermit { streams: self.clone(), owner_id, agent_id, _open: OpenStream::new() })
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Uuid, HashMap<Uuid, usize>>> {
        // Nothing panics while it holds the lock, and every state in between is a good one.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open stream's permit among those of its agent.
pub struct StreamPermit {
    streams: Arc<Streams>,
    owner_id: Uuid,
    agent_id: Uuid,
    _open: OpenStream,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.locked();
        let Some(agents) = open.get_mut(&self.owner_id) else { return };
        if let Some(count) = agents.get_mut(&self.agent_id) {
            *count -= 1;
        }
        agents.retain(|_, count| *count > 0);
        if agents.is_empty() {
            open.remove(&self.owner_id);
        }
    }
}
