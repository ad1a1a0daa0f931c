//! Limits the open event streams per tenant and per agent, so that none of them uses all
//! connections of the server.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::http::metrics::OpenStream;
use crate::http::problem::Problem;

/// The limits and the format of event streams.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// Concurrently open in one tenant.
    pub most_per_tenant: usize,
    /// Concurrently open by one agent.
    pub most_per_agent: usize,
    /// The interval of pings. Clients treat a stream as dead after three times 15 seconds of
    /// silence.
    pub ping_every: Duration,
    /// How long a stream can continue at the shutdown until it has sent the events so far, which
    /// may wait for another transaction to end. Shorter than the time to drain.
    pub flush_time: Duration,
    /// Sends a new record as `breadcrumb.updated`, as RCRT does, because some of its clients listen
    /// only for that. Not on streams with `all`.
    pub new_as_updated: bool,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            most_per_tenant: 2000,
            most_per_agent: 500,
            ping_every: Duration::from_secs(15),
            flush_time: Duration::from_secs(5),
            new_as_updated: false,
        }
    }
}

/// The open streams.
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
        let mut open = self.open.lock();
        let agents = open.entry(owner_id).or_default();
        let (of_agent, of_tenant) =
            (agents.get(&agent_id).copied().unwrap_or_default(), agents.values().sum::<usize>());
        if of_agent >= options.most_per_agent {
            return Err(Problem::too_many_streams("agent", options.most_per_agent, "--max-streams-per-agent"));
        }
        if of_tenant >= options.most_per_tenant {
            return Err(Problem::too_many_streams("tenant", options.most_per_tenant, "--max-streams"));
        }
        *agents.entry(agent_id).or_default() += 1;
        drop(open);
        Ok(StreamPermit { streams: self.clone(), owner_id, agent_id, _open: OpenStream::new() })
    }

    /// The tenants with an open stream.
    pub fn tenants(&self) -> Vec<Uuid> {
        self.open.lock().keys().copied().collect()
    }

    /// The agents of this tenant with an open stream.
    pub fn agents(&self, owner_id: Uuid) -> HashSet<Uuid> {
        self.open.lock().get(&owner_id).into_iter().flat_map(|agents| agents.keys().copied()).collect()
    }
}

/// The permit of one open stream.
pub struct StreamPermit {
    streams: Arc<Streams>,
    owner_id: Uuid,
    agent_id: Uuid,
    _open: OpenStream,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock();
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
