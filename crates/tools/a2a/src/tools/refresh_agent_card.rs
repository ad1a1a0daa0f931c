//! `refresh_agent_card`: reads an agent's card again. A changed card waits for a curator.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::Utc;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use serde_json::{Map, Value, json};
use url::Url;

use super::get_agent_details::Named;
use crate::A2a;
use crate::agent::PinnedCard;
use crate::failures::{failed, read_input};

pub(crate) struct RefreshAgentCard(pub Arc<A2a>);

#[async_trait]
impl NativeTool for RefreshAgentCard {
    fn name(&self) -> &'static str {
        "refresh_agent_card"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Named { agent_name } = read_input(call)?;
        let mut known = self.0.find(call, &agent_name).await?;
        let url = Url::parse(&known.agent.card_url).map_err(|error| failed(format!("the card's URL: {error}")))?;
        let (_, read) = self.0.read_card(call, &url).await?;
        known.agent.last_seen = Utc::now();
        let is_changed = read.card.card_hash != known.agent.card.card_hash;
        let mut answer = json!({"agentName": known.agent.name, "changed": is_changed, "cardHash": read.card.card_hash});
        if is_changed {
            answer["differences"] = json!(differences(&known.agent.card, &read.card));
            answer["waitsFor"] = "a curator, who sets accepted_hash in the agent's record to cardHash".into();
            answer["record"] = json!(known.id);
        }
        known.agent.pending = is_changed.then_some(read.card);
        self.0.rewrite(call, &known).await?;
        Ok(answer)
    }
}

/// What changed, in words.
fn differences(old: &PinnedCard, new: &PinnedCard) -> Vec<String> {
    let mut found = Vec::new();
    if old.interface != new.interface {
        found.push(format!("interface: {} was {}", new.interface.url, old.interface.url));
    }
    if old.description != new.description {
        found.push("description".into());
    }
    if old.version != new.version {
        found.push(format!("version: {} was {}", new.version, old.version));
    }
    for skill in &new.skills {
        match old.skills.iter().find(|known| known.id == skill.id) {
            None => found.push(format!("skill {} is new", skill.id)),
            Some(known) if known != skill => found.push(format!("skill {} changed", skill.id)),
            Some(_) => {}
        }
    }
    let is_gone = |skill: &&crate::Skill| new.skills.iter().all(|known| known.id != skill.id);
    found.extend(old.skills.iter().filter(is_gone).map(|skill| format!("skill {} is gone", skill.id)));
    if found.is_empty() {
        found.push("parts of the card that are not used here".into());
    }
    found
}
