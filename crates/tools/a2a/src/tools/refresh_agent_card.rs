//! `refresh_agent_card`: reads an agent's card again. A changed card waits for a curator.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde_json::{Map, Value, json};

use super::get_agent_details::Named;
use crate::A2a;
use crate::card::differences;
use crate::remote::CardWay;

pub(crate) struct RefreshAgentCard(pub Arc<A2a>);

#[async_trait]
impl NativeTool for RefreshAgentCard {
    fn name(&self) -> &'static str {
        "refresh_agent_card"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Named { agent_name } = read_input(call)?;
        let known = self.0.find(call, &agent_name).await?;
        let agent = self.0.refresh(&known, &CardWay::of(call)?).await?.agent;
        let shown = agent.pending.as_ref().unwrap_or(&agent.card);
        let mut answer =
            json!({"agentName": agent.name, "changed": agent.pending.is_some(), "cardHash": shown.card_hash});
        if let Some(pending) = &agent.pending {
            answer["differences"] = json!(differences(&agent.card, pending));
            answer["waitsFor"] = format!("a curator, who runs: rcrt a2a accept {:?}", agent.name).into();
            answer["record"] = json!(known.id);
        }
        Ok(answer)
    }
}
