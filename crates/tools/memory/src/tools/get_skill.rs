//! `get_skill`.

use async_trait::async_trait;
use rcrt_breadcrumb::{ToolFailure, nearest_names};
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer;
use crate::skills;

pub(super) struct GetSkill;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
}

#[async_trait]
impl NativeTool for GetSkill {
    fn name(&self) -> &'static str {
        "get_skill"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = answer::read(call)?;
        let found = skills::get(&*call.breadcrumbs, &input.name).await.map_err(answer::store)?;
        let Some(skill) = found else { return Err(unknown(call, &input.name).await) };
        Ok(json!({
            "name": skill.guide.name,
            "summary": skill.guide.summary,
            "content": skill.guide.content,
            "tools": skill.guide.tools,
            "resources": skill.guide.resources,
        }))
    }
}

async fn unknown(call: &ToolCall, name: &str) -> ToolFailure {
    let there = match skills::all(&*call.breadcrumbs).await {
        Ok(there) => there,
        Err(error) => return answer::store(error),
    };
    let names: Vec<&str> = there.iter().map(|skill| skill.guide.name.as_str()).collect();
    let nearest = nearest_names(name, names.iter().copied());
    let hint = match (&nearest[..], &names[..]) {
        ([], []) => "there are no skills yet".to_owned(),
        ([], some) => format!("existing skills: {}", some.iter().take(100).copied().collect::<Vec<_>>().join(", ")),
        (nearest, _) => format!("did you mean {}?", nearest.join(", ")),
    };
    let shown: String = name.chars().take(100).collect();
    answer::invalid("name", format!("there is no skill {shown:?}; {hint}"))
}
