//! `list_tool_guides`.

use async_trait::async_trait;
use rcrt_breadcrumb::{Guide, ToolFailure};
use rcrt_executors::{NativeTool, ToolCall};
use rcrt_large_results::{at_most, one_line};
use serde_json::{Map, Value, json};

use super::answer;

pub(super) struct ListGuides;

#[async_trait]
impl NativeTool for ListGuides {
    fn name(&self) -> &'static str {
        "list_tool_guides"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let guides = Guide::all(&*call.breadcrumbs).await.map_err(answer::store)?;
        let row = |guide: &Guide| {
            json!({
                "name": guide.name,
                "title": at_most(&one_line(&guide.title), 200),
                "summary": at_most(&one_line(&guide.summary), 500),
                "tools": guide.tools,
            })
        };
        Ok(json!({"guides": guides.iter().map(row).collect::<Vec<_>>()}))
    }
}
