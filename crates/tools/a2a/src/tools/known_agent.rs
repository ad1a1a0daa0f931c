//! What is done with one known agent: `get_agent_details`, `refresh_agent_card`, which reads its
//! card again (a changed card waits for a curator), and `unregister_agent`.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::check_rights;
use crate::A2a;
use crate::agent::AgentRecord;
use crate::card::differences;
use crate::directory::remove_agent;
use crate::failures::{denied, store_failed};
use crate::remote::CardWay;

pub(crate) struct GetAgentDetails(pub Arc<A2a>);

/// The input of the tools that need a name only.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    agent_name: String,
}

#[async_trait]
impl InputTool for GetAgentDetails {
    const NAME: &'static str = "get_agent_details";
    type Input = Named;

    async fn run(&self, Named { agent_name }: Named, call: &ToolCall) -> Result<Value, ToolFailure> {
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

pub(crate) struct RefreshAgentCard(pub Arc<A2a>);

#[async_trait]
impl InputTool for RefreshAgentCard {
    const NAME: &'static str = "refresh_agent_card";
    type Input = Named;

    async fn run(&self, Named { agent_name }: Named, call: &ToolCall) -> Result<Value, ToolFailure> {
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

pub(crate) struct UnregisterAgent(pub Arc<A2a>);

#[async_trait]
impl InputTool for UnregisterAgent {
    const NAME: &'static str = "unregister_agent";
    type Input = Named;

    async fn run(&self, Named { agent_name }: Named, call: &ToolCall) -> Result<Value, ToolFailure> {
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
