//! `unregister_agent`: removes an agent that was registered.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde_json::{Map, Value, json};

use super::check_rights;
use super::get_agent_details::Named;
use crate::A2a;
use crate::directory::remove_agent;
use crate::failures::{denied, store_failed};

pub(crate) struct UnregisterAgent(pub Arc<A2a>);

#[async_trait]
impl NativeTool for UnregisterAgent {
    fn name(&self) -> &'static str {
        "unregister_agent"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Named { agent_name } = read_input(call)?;
        check_rights(call).await?;
        if self.0.well_known(&agent_name).is_some() {
            return Err(denied(format!("the agent {agent_name:?} is the operator's, so it cannot be unregistered")));
        }
        // For an unknown name: the failure says which names there are.
        let known = self.0.find(call, &agent_name).await?;
        let removed = remove_agent(&*self.0.store, &known.agent.name).await.map_err(store_failed)?;
        Ok(json!({"agentName": removed.unwrap_or(known.agent.name), "removed": true}))
    }
}
