//! The selectors of agents with open streams, in memory: a change applies to the next event of
//! every open stream.
//!
//! A change in this process is visible right after its commit. Other processes are notified by the
//! [announcer](crate::events), and also poll every few seconds, so correctness does not depend on
//! the notification.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{Matcher, StoreError};
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::VersionedSelectors;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::events::EventStreams;

/// How long a change of another process may be unknown if its notification was lost.
const LOOK: Duration = Duration::from_millis(500);
/// The longest time from a change's first statement to its commit. Longer than any statement
/// timeout.
const SLOWEST_CHANGE: Duration = Duration::from_mins(2);

/// Owner and agent.
type AgentId = (Uuid, Uuid);

#[derive(Default)]
pub(crate) struct OpenSelectors {
    agents: Mutex<HashMap<AgentId, Weak<AgentSelectors>>>,
}

/// One agent's selectors, shared by its open streams.
pub(crate) struct AgentSelectors {
    known: Mutex<Known>,
}

struct Known {
    version: i64,
    selectors: Arc<[Matcher]>,
}

impl AgentSelectors {
    /// The current selectors, to be matched without the lock.
    pub(crate) fn now(&self) -> Arc<[Matcher]> {
        self.known.lock().selectors.clone()
    }

    fn version(&self) -> i64 {
        self.known.lock().version
    }

    fn apply(&self, kept: &VersionedSelectors) {
        let selectors = kept.selectors.iter().map(|one| Matcher::from(&one.selector)).collect();
        let mut known = self.known.lock();
        if kept.version >= known.version {
            *known = Known { version: kept.version, selectors };
        }
    }
}

impl OpenSelectors {
    /// Returns the selectors for a new stream.
    pub(crate) async fn of(streams: &Arc<EventStreams>, owner_id: Uuid, agent: Uuid) -> Result<Arc<AgentSelectors>> {
        // Joins before it reads, so that a change during the read is not lost.
        let selectors = streams.selectors.join((owner_id, agent));
        selectors.apply(&read(streams, owner_id, agent).await?);
        Ok(selectors)
    }

    fn join(&self, id: AgentId) -> Arc<AgentSelectors> {
        let mut agents = self.agents.lock();
        if let Some(open) = agents.get(&id).and_then(Weak::upgrade) {
            return open;
        }
        agents.retain(|_, open| open.strong_count() > 0);
        let known = Mutex::new(Known { version: -1, selectors: Arc::from([]) });
        let open = Arc::new(AgentSelectors { known });
        agents.insert(id, Arc::downgrade(&open));
        open
    }

    fn opened(&self, id: AgentId) -> Option<Arc<AgentSelectors>> {
        self.agents.lock().get(&id)?.upgrade()
    }

    fn is_empty(&self) -> bool {
        self.agents.lock().values().all(|open| open.strong_count() == 0)
    }

    /// Applies a change that this process has committed.
    pub(crate) fn apply(&self, owner_id: Uuid, agent: Uuid, kept: &VersionedSelectors) {
        if let Some(open) = self.opened((owner_id, agent)) {
            open.apply(kept);
        }
    }
}

async fn read(streams: &Arc<EventStreams>, owner_id: Uuid, agent: Uuid) -> Result<VersionedSelectors> {
    super::read(&mut TenantTransaction::begin(&streams.database, owner_id).await?, agent).await
}

/// Reads what other processes changed, when notified and twice a second, until the store is
/// closed.
pub(crate) async fn renew(streams: Arc<EventStreams>) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked = Instant::now();
    loop {
        tokio::select! {
            () = streams.database.stop.cancelled() => return,
            _ = looks.tick() => {}
            () = streams.announcer.selectors_changed() => {}
        }
        if streams.selectors.is_empty() {
            // Streams that open from now on read the current state themselves.
            looked = Instant::now();
            continue;
        }
        let began = Instant::now();
        let look = look(&streams, looked.elapsed() + SLOWEST_CHANGE);
        let result = tokio::select! {
            () = streams.database.stop.cancelled() => return,
            result = look => result,
        };
        match result {
            Ok(()) => looked = began,
            Err(failure) => {
                tracing::debug!(error = %StoreError::from(failure), "reading changed selectors failed; retrying");
            }
        }
    }
}

async fn look(streams: &Arc<EventStreams>, within: Duration) -> Result<()> {
    let changed: Vec<(Uuid, Uuid, i64)> = {
        let mut tx = streams.database.begin("BEGIN").await?;
        sqlx::query_as("SELECT owner_id, agent_id, version FROM selectors_changed_within($1)")
            .bind(within.as_secs_f64())
            .fetch_all(&mut *tx)
            .await?
    };
    for (owner_id, agent, version) in changed {
        if let Some(open) = streams.selectors.opened((owner_id, agent))
            && open.version() < version
        {
            open.apply(&read(streams, owner_id, agent).await?);
        }
    }
    Ok(())
}
