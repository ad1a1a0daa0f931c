//! `retire_tool`.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::builtin::{read_input, store_failed};
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::own_tool;

pub(super) struct RetireTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
}

#[async_trait]
impl NativeTool for RetireTool {
    fn name(&self) -> &'static str {
        "retire_tool"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Input { name } = read_input(call)?;
        let own = own_tool(call, &name).await?;
        call.breadcrumbs.delete(own.id, Some(own.version)).await.map_err(store_failed)?;
        Ok(json!({"name": name, "tool_id": own.id, "retired": true}))
    }
}
