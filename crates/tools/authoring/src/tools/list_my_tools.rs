//! `list_my_tools`.

use async_trait::async_trait;
use rcrt_breadcrumb::{ToolFailure, is_draft};
use rcrt_executors::builtin::store_failed;
use rcrt_executors::{NativeTool, ToolCall};
use serde_json::{Map, Value, json};

use crate::owned_tools::made_by;

pub(super) struct ListMyTools;

#[async_trait]
impl NativeTool for ListMyTools {
    fn name(&self) -> &'static str {
        "list_my_tools"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let made = made_by(&*call.breadcrumbs, call.request.agent_id).await.map_err(store_failed)?;
        let tools = made.into_iter().map(|record| {
            json!({
                "name": record.context.get("name"),
                "description": record.context.get("description"),
                "version": record.context.get("version"),
                "tool_id": record.id,
                "record_version": record.version,
                "draft": is_draft(&record.tags),
                "updated_at": record.updated_at,
            })
        });
        Ok(json!({"tools": tools.collect::<Vec<_>>()}))
    }
}
