//! `list_known_agents`: the known agents with their skills.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::A2a;
use crate::directory::agents;
use crate::failures::store_failed;

pub(crate) struct ListKnownAgents(pub Arc<A2a>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    skill: Option<String>,
}

#[async_trait]
impl InputTool for ListKnownAgents {
    const NAME: &'static str = "list_known_agents";
    type Input = Input;

    async fn run(&self, Input { skill }: Input, _call: &ToolCall) -> Result<Value, ToolFailure> {
        let known = agents(&*self.0.store).await.map_err(store_failed)?;
        let listed = known.iter().map(|known| &known.agent);
        let mut list: Vec<Value> = listed
            .clone()
            .filter(|agent| skill.as_ref().is_none_or(|skill| agent.skill(skill).is_some()))
            .map(|agent| {
                let skills: Vec<Value> = agent
                    .card
                    .skills
                    .iter()
                    .map(|skill| json!({"id": skill.id, "description": skill.description}))
                    .collect();
                json!({
                    "agentName": agent.name,
                    "description": agent.card.description,
                    "lastSeen": agent.last_seen,
                    "skills": skills,
                })
            })
            .collect();
        // Their cards are read when they are first used.
        for well_known in self.0.settings.well_known.iter().filter(|_| skill.is_none()) {
            if !listed.clone().any(|agent| agent.name.eq_ignore_ascii_case(&well_known.name)) {
                list.push(json!({"agentName": well_known.name, "description": "", "lastSeen": null, "skills": []}));
            }
        }
        Ok(Value::Array(list))
    }
}
