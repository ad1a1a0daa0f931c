//! `list_skills`.

use async_trait::async_trait;
use chrono::SecondsFormat;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use rcrt_large_results::{at_most, one_line};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer;
use crate::skills::{self, Skill};

pub(super) struct ListSkills;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {}

#[async_trait]
impl NativeTool for ListSkills {
    fn name(&self) -> &'static str {
        "list_skills"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Input {} = answer::read(call)?;
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
