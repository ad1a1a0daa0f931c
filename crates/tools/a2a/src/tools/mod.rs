//! The tools: to know other agents, and to ask them.

mod invoke_agent;
mod known_agent;
mod list_known_agents;
mod register_agent;

use std::sync::Arc;

use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};

use crate::A2a;
use crate::failures::{denied, store_failed};

pub(crate) fn all(a2a: &Arc<A2a>) -> Vec<Arc<dyn NativeTool>> {
    vec![
        Arc::new(invoke_agent::InvokeAgent(a2a.clone())),
        Arc::new(list_known_agents::ListKnownAgents(a2a.clone())),
        Arc::new(known_agent::GetAgentDetails(a2a.clone())),
        Arc::new(register_agent::RegisterAgent(a2a.clone())),
        Arc::new(known_agent::UnregisterAgent(a2a.clone())),
        Arc::new(known_agent::RefreshAgentCard(a2a.clone())),
    ]
}

/// Which agents are known is decided by curators with the profile main.
async fn check_rights(call: &ToolCall) -> Result<(), ToolFailure> {
    if let Some(profile) = call.profiles.iter().next() {
        return Err(denied(format!("the profile {profile} does not decide which agents are known; it needs main")));
    }
    if !call.breadcrumbs.is_curator().await.map_err(store_failed)? {
        return Err(denied("only an agent with the role curator can register and unregister agents"));
    }
    Ok(())
}
