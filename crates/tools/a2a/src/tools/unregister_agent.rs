//! `unregister_agent`: removes an agent that was registered.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use serde_json::{Map, Value, json};

use super::get_agent_details::Named;
use crate::A2a;
use crate::directory;
use crate::failures::{denied, from_store, read_input};

pub(crate) struct UnregisterAgent(pub Arc<A2a>);

#[async_trait]
impl NativeTool for UnregisterAgent {
    fn name(&self) -> &'static str {
        "unregister_agent"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Named { agent_name } = read_input(call)?;
        if self.0.well_known(&agent_name).is_some() {
            return Err(denied(format!("the agent {agent_name:?} is the operator's, so it cannot be unregistered")));
        }
        // All records with this name, if several runners registered it at the same time.
        let mut removed = self.0.find(call, &agent_name).await?;
        let name = removed.agent.name.clone();
        loop {
            call.breadcrumbs.delete(removed.id, None).await.map_err(from_store)?;
            let left = directory::all(&*call.breadcrumbs).await.map_err(from_store)?;
            match left.into_iter().find(|known| known.agent.name.eq_ignore_ascii_case(&name)) {
                Some(again) => removed = again,
                None => return Ok(json!({"agentName": name, "removed": true})),
            }
        }
    }
}
