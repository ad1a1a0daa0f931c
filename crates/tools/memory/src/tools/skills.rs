//! `get_skill`, `list_skills` and `delete_skill`.

use async_trait::async_trait;
use chrono::SecondsFormat;
use rcrt_breadcrumb::{ToolFailure, nearest_names};
use rcrt_executors::{InputTool, ToolCall};
use rcrt_large_results::{at_most, one_line};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use crate::skills::{self, Skill};

/// The input that names a skill.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Name {
    name: String,
}

pub(super) struct GetSkill;

#[async_trait]
impl InputTool for GetSkill {
    const NAME: &'static str = "get_skill";
    type Input = Name;

    async fn run(&self, input: Name, call: &ToolCall) -> Result<Value, ToolFailure> {
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

pub(super) struct ListSkills;

/// The input of a list: nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[async_trait]
impl InputTool for ListSkills {
    const NAME: &'static str = "list_skills";
    type Input = Nothing;

    async fn run(&self, _: Nothing, call: &ToolCall) -> Result<Value, ToolFailure> {
        let found = skills::all(&*call.breadcrumbs).await.map_err(answer::store)?;
        let row = |skill: &Skill| {
            json!({
                "name": skill.guide.name,
                "summary": at_most(&one_line(&skill.guide.summary), 500),
                "tools": skill.guide.tools,
                "saved_at": skill.item.updated_at.to_rfc3339_opts(SecondsFormat::Secs, true),
            })
        };
        Ok(json!({"skills": found.iter().map(row).collect::<Vec<_>>()}))
    }
}

pub(super) struct DeleteSkill;

#[async_trait]
impl InputTool for DeleteSkill {
    const NAME: &'static str = "delete_skill";
    type Input = Name;

    async fn run(&self, input: Name, call: &ToolCall) -> Result<Value, ToolFailure> {
        let deleted = skills::delete(&*call.breadcrumbs, &input.name).await.map_err(answer::store)?;
        Ok(json!({"name": input.name, "deleted": deleted}))
    }
}
