//! `get_agent_details`: what is known of one agent.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::A2a;
use crate::agent::AgentRecord;

pub(crate) struct GetAgentDetails(pub Arc<A2a>);

/// The input of the tools that need a name only.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub agent_name: String,
}

#[async_trait]
impl NativeTool for GetAgentDetails {
    fn name(&self) -> &'static str {
        "get_agent_details"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Named { agent_name } = read_input(call)?;
        let known = self.0.find(call, &agent_name).await?;
        let has_header = self.0.well_known(&known.agent.name).is_some_and(|well_known| well_known.header.is_some());
        Ok(details(&known.agent, has_header))
    }
}

/// What is shown of an agent; never its secret.
pub(super) fn details(agent: &AgentRecord, has_header: bool) -> Value {
    let card = &agent.card;
    let mut shown = json!({
        "agentName": agent.name,
        "description": card.description,
        "version": card.version,
        "url": card.interface.url,
        "binding": card.interface.binding,
        "cardHash": card.card_hash,
        "hasAuth": agent.auth.is_some() || agent.well_known && has_header,
        "isWellKnown": agent.well_known,
        "streaming": card.streaming,
        "lastSeen": agent.last_seen,
        "skills": card.skills,
    });
    if let Some(problem) = &agent.problem {
        shown["problem"] = json!(problem);
    }
    if let Some(pending) = &agent.pending {
        shown["changedCard"] = json!({"cardHash": pending.card_hash, "waitsFor": "a curator"});
    }
    shown
}
