//! How many calls of one agent can be queued. No row holds the number, because writers would wait
//! for each other on it. It is counted when an agent has written as many calls as were left at its
//! last count. So each process counts for itself, and writes that are in progress during a count
//! can exceed the limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metrics::counter;
use parking_lot::Mutex;
use rcrt_breadcrumb::StoreError;
use tokio::time::Instant;
use uuid::Uuid;

use crate::database::Database;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// Between two counts of one agent, for each call that it can have. A count reads as many rows.
const COUNT_INTERVAL: Duration = Duration::from_micros(50);
const MIN_COUNT_INTERVAL: Duration = Duration::from_millis(10);
const MAX_COUNT_INTERVAL: Duration = Duration::from_secs(1);
/// Agents are dropped from memory when they have written nothing for this long, at the first write
/// of another.
const KEPT_FOR: Duration = Duration::from_mins(1);

pub(crate) struct QueueLimit {
    max: u32,
    /// By tenant and agent.
    agents: Mutex<HashMap<(Uuid, Uuid), Arc<Agent>>>,
}

struct Agent {
    state: Mutex<AgentState>,
    /// Held during a count: one at a time.
    counting: tokio::sync::Mutex<()>,
}

struct AgentState {
    /// How many calls the agent can write before the next count.
    left: u32,
    counted: Option<Instant>,
    written: Instant,
}

impl QueueLimit {
    pub fn new(max: u32) -> Self {
        Self { max, agents: Mutex::default() }
    }

    /// Takes a place in the queue for a call of this agent.
    pub async fn take(&self, database: &Arc<Database>, owner_id: Uuid, agent_id: Uuid) -> Result<()> {
        let agent = self.agent(owner_id, agent_id);
        if agent.take_one_left() {
            return Ok(());
        }
        let _turn = agent.counting.lock().await;
        // Another write may have counted meanwhile.
        if agent.take_one_left() {
            return Ok(());
        }
        if agent.state.lock().counted.is_none_or(|at| at.elapsed() >= self.count_interval()) {
            let queued = count(database, owner_id, agent_id, self.max).await?;
            let mut state = agent.state.lock();
            state.left = self.max.saturating_sub(queued);
            state.counted = Some(Instant::now());
        }
        if agent.take_one_left() {
            return Ok(());
        }
        counter!("rcrt_queue_refusals_total").increment(1);
        Err(StoreError::QueueFull { limit: u64::from(self.max) }.into())
    }

    fn agent(&self, owner_id: Uuid, agent_id: Uuid) -> Arc<Agent> {
        let mut agents = self.agents.lock();
        if let Some(agent) = agents.get(&(owner_id, agent_id)) {
            return agent.clone();
        }
        agents.retain(|_, agent| Arc::strong_count(agent) > 1 || agent.state.lock().written.elapsed() < KEPT_FOR);
        let state = AgentState { left: 0, counted: None, written: Instant::now() };
        let agent = Arc::new(Agent { state: Mutex::new(state), counting: tokio::sync::Mutex::default() });
        agents.insert((owner_id, agent_id), agent.clone());
        agent
    }

    fn count_interval(&self) -> Duration {
        (COUNT_INTERVAL * self.max).clamp(MIN_COUNT_INTERVAL, MAX_COUNT_INTERVAL)
    }
}

impl Agent {
    fn take_one_left(&self) -> bool {
        let mut state = self.state.lock();
        state.written = Instant::now();
        let Some(left) = state.left.checked_sub(1) else { return false };
        state.left = left;
        true
    }
}

/// The agent's queued calls, and at most `max`. A call that another call made is limited by
/// `count_descendants` instead.
async fn count(database: &Arc<Database>, owner_id: Uuid, agent_id: Uuid, max: u32) -> Result<u32> {
    let mut tx = TenantTransaction::begin(database, owner_id).await?;
    let queued: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (
            SELECT FROM calls WHERE runner_id IS NULL AND response IS NULL AND parent IS NULL AND agent_id = $1
            LIMIT $2) queued",
    )
    .bind(agent_id)
    .bind(i64::from(max))
    .fetch_one(tx.connection())
    .await?;
    Ok(u32::try_from(queued).unwrap_or(u32::MAX))
}
