//! Other agents as tools, by the protocol A2A 1.0: the tools that know, register and ask them, and
//! the follower that brings the results of tasks that take long.
//!
//! An agent is a record `a2a.agent.v1` with its card, pinned by a hash. A task is a record
//! `a2a.task.v1`, written before the message is sent, so that no runner's end loses it: whatever
//! runner follows it next writes its result, once. All requests go through the egress gate.
//!
//! What agents send is bounded and cleaned (`text.rs`, `card.rs`, `task.rs`). This crate
//! deliberately does not know the server side of A2A.
//!
//! Begin with `task.rs` (a task and its states), `tools/invoke_agent.rs` and `follower.rs`.

mod agent;
mod card;
mod directory;
mod failures;
mod follower;
mod remote;
mod settings;
mod task;
mod task_records;
mod text;
mod tools;

use std::sync::Arc;

use rcrt_breadcrumb::Breadcrumbs;
use rcrt_egress::Egress;
use rcrt_executors::NativeTool;
use uuid::Uuid;

pub use agent::{AGENT_SCHEMA, AgentRecord, Auth, Interface, Skill};
pub use follower::Follower;
pub use settings::{Settings, WellKnown, WellKnownError};
pub use task::{Status, TASK_SCHEMA, TaskRecord};

/// What the tools and the follower of one runner share.
pub struct A2a {
    pub(crate) egress: Arc<Egress>,
    pub(crate) settings: Settings,
    /// Names this runner in the tasks that it began.
    pub(crate) runner: Uuid,
}

impl A2a {
    pub fn new(egress: Arc<Egress>, settings: Settings) -> Arc<Self> {
        Arc::new(Self { egress, settings, runner: Uuid::new_v4() })
    }

    /// `invoke_agent`, `list_known_agents`, `get_agent_details`, `register_agent`,
    /// `unregister_agent` and `refresh_agent_card`.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn NativeTool>> {
        tools::all(self)
    }

    /// Follows the tasks of a tenant. `store` is the store as the runner's agent sees it.
    pub fn follower(self: &Arc<Self>, store: Arc<dyn Breadcrumbs>) -> Follower {
        Follower::new(self.clone(), store)
    }
}
