//! `mcp_find_tools`: the tools of all servers that fit a text best.

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, Registration, ToolFailure, ToolSource};
use rcrt_executors::builtin::refused;
use rcrt_executors::{InputTool, ToolCall};
use rcrt_tool_search::{Question, ToolSearch};
use serde::Deserialize;
use serde_json::Value;

use super::details::describe;
use super::{Tools, VisibleTool};

pub(super) struct FindTools(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    query: String,
    #[serde(default = "five")]
    limit: usize,
}

fn five() -> usize {
    5
}

#[async_trait]
impl InputTool for FindTools {
    const NAME: &'static str = "mcp_find_tools";
    type Input = Input;

    async fn run(&self, Input { query, limit }: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let question = Question::new("query", &query).map_err(|found| refused(&found))?;
        let tools = self.0.visible_tools(call, None).await?;
        let records: Vec<_> = tools.iter().map(|tool| tool.id).collect();
        // Tools of other sources may be nearer, so the vectors of these are read.
        let question = question.with_meaning(&*self.0.servers.store, &records, usize::MAX).await;
        // Indexing computes.
        let ranked = tokio::task::spawn_blocking(move || rank(&tools, &question, limit.clamp(1, 50))).await;
        ranked.map_err(|error| {
            ToolFailure::new(ErrorCode::ExecutionFailed, format!("the tools cannot be searched: {error}"))
        })
    }
}

/// The best first. Only tools that the caller can call are in the index.
fn rank(tools: &[VisibleTool], question: &Question, limit: usize) -> Value {
    let mut search = ToolSearch::default();
    for tool in tools {
        search.insert(registration(tool));
    }
    let found = search.tools(question, |_| true, limit);
    found.iter().filter_map(|found| tools.iter().find(|tool| tool.name == found.name)).map(describe).collect()
}

fn registration(tool: &VisibleTool) -> Registration {
    let text = |field: &str| tool.context.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let definition = tool.context.get("definition");
    let annotations = tool.context.get("annotations").cloned();
    Registration {
        name: tool.name.clone(),
        description: text("description"),
        parameters: definition.and_then(|definition| definition.get("inputSchema")).cloned().unwrap_or_default(),
        output_schema: None,
        source: ToolSource::Mcp(tool.server.clone()),
        annotations: annotations.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default(),
        deprecated: None,
        tags: Vec::new(),
        tool_id: tool.id,
        tool_version: 0,
    }
}
