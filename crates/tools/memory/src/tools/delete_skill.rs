//! `delete_skill`.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer;
use crate::skills;

pub(super) struct DeleteSkill;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
}

#[async_trait]
impl NativeTool for DeleteSkill {
    fn name(&self) -> &'static str {
        "delete_skill"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = answer::read(call)?;
        let deleted = skills::delete(&*call.breadcrumbs, &input.name).await.map_err(answer::store)?;
        Ok(json!({"name": input.name, "deleted": deleted}))
    }
}
