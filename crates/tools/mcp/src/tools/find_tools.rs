//! `mcp_find_tools`: the tools of all servers whose name or description has the words.

use async_trait::async_trait;
use rcrt_breadcrumb::{ToolFailure, Violations};
use rcrt_executors::builtin::refused;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::details::describe;
use super::{Tools, VisibleTool, read_input};

pub(super) struct FindTools(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    query: String,
    #[serde(default = "five")]
    limit: usize,
}

fn five() -> usize {
    5
}

#[async_trait]
impl NativeTool for FindTools {
    fn name(&self) -> &'static str {
        "mcp_find_tools"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Input { query, limit } = read_input(call)?;
        let words = words(&query);
        if words.is_empty() {
            return Err(refused(&Violations::one("query", "must have at least one word")));
        }
        let tools = self.0.visible_tools(call, None).await?;
        let mut found: Vec<(usize, &VisibleTool)> =
            tools.iter().map(|tool| (matches(tool, &words), tool)).filter(|(matches, _)| *matches > 0).collect();
        found.sort_by(|(left, a), (right, b)| right.cmp(left).then_with(|| a.name.cmp(&b.name)));
        Ok(found.into_iter().take(limit.clamp(1, 50)).map(|(_, tool)| describe(tool)).collect())
    }
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.map(str::to_lowercase).collect()
}

/// How many of the words the tool has. A word in its name counts twice.
fn matches(tool: &VisibleTool, wanted: &[String]) -> usize {
    let name = words(&tool.name);
    let description = words(tool.context.get("description").and_then(Value::as_str).unwrap_or_default());
    let count = |word: &String| 2 * usize::from(name.contains(word)) + usize::from(description.contains(word));
    wanted.iter().map(count).sum()
}
