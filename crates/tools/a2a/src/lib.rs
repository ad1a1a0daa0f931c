//! Other agents as tools, by the protocol A2A 1.0: the tools that know, register and ask them, the
//! follower that brings the results of tasks that take long, and the keeper of their cards.
//!
//! An agent is a record `a2a.agent.v1` with its card, pinned by a hash. A task is a record
//! `a2a.task.v1`, written before the message is sent, so that no runner's end loses it: whatever
//! runner follows it next writes its result, once. All requests go through the egress gate.
//!
//! What agents send is bounded and cleaned (`card.rs`, `task.rs`). This crate
//! deliberately does not know the server side of A2A.
//!
//! Begin with `task.rs` (a task and its states), `tools/invoke_agent.rs` and `follower.rs`.

mod agent;
mod answer;
mod card;
mod delivery;
mod directory;
mod failures;
mod follower;
mod keeper;
mod refresh;
mod remote;
mod settings;
mod task;
mod task_records;
mod tools;
mod updates;

use std::sync::Arc;

use rcrt_breadcrumb::Breadcrumbs;
use rcrt_egress::Egress;
use rcrt_executors::NativeTool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use follower::Follower;

pub use agent::{AGENT_SCHEMA, AgentRecord, Auth, Interface, PinnedCard, Skill};
pub use directory::{KnownAgent, accept_card, agents, remove_agent};
pub use settings::{Settings, WellKnown, WellKnownError};
pub use task::{Status, TASK_SCHEMA, TaskRecord};

/// What the tools of one runner and its work on agents share.
pub struct A2a {
    /// As the runner's own agent sees it. A caller reads only its own calls, so its tools read and
    /// write agents and tasks with this.
    pub(crate) store: Arc<dyn Breadcrumbs>,
    pub(crate) egress: Arc<Egress>,
    pub(crate) settings: Settings,
    /// Names this runner in the tasks that it began.
    pub(crate) runner: Uuid,
}

impl A2a {
    /// `store` is the store of the runner's tenant, as the runner's own agent sees it.
    pub fn new(store: Arc<dyn Breadcrumbs>, egress: Arc<Egress>, settings: Settings) -> Arc<Self> {
        Arc::new(Self { store, egress, settings, runner: Uuid::new_v4() })
    }

    /// `invoke_agent`, `list_known_agents`, `get_agent_details`, `register_agent`,
    /// `unregister_agent` and `refresh_agent_card`.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn NativeTool>> {
        tools::all(self)
    }

    /// Follows the tasks of the tenant and reads the cards of its agents again when it is time,
    /// until it is stopped. If the store is unavailable, it waits.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = Follower::new(self.clone()).run() => {}
            () = keeper::run(&self) => {}
        }
    }
}
