//! `list_tool_guides` and `get_tool_guide`.

use async_trait::async_trait;
use rcrt_breadcrumb::{Guide, ToolFailure};
use rcrt_executors::{NativeTool, ToolCall};
use rcrt_large_results::{at_most, one_line};
use serde::Deserialize;
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

pub(super) struct GetGuide;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
}

#[async_trait]
impl NativeTool for GetGuide {
    fn name(&self) -> &'static str {
        "get_tool_guide"
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = answer::read(call)?;
        let guides = Guide::all(&*call.breadcrumbs).await.map_err(answer::store)?;
        let wanted = input.name.trim();
        let by_name = guides.iter().find(|guide| guide.name == wanted);
        let by_tool = || guides.iter().find(|guide| guide.tools.iter().any(|tool| tool == wanted));
        match by_name.or_else(by_tool) {
            Some(guide) => {
                metadata.insert("guide".into(), json!({"name": guide.name, "tools": guide.tools}));
                Ok(guide.content.as_str().into())
            }
            None => Err(unknown(wanted, &guides)),
        }
    }
}

fn unknown(wanted: &str, guides: &[Guide]) -> ToolFailure {
    let names: Vec<&str> = guides.iter().map(|guide| guide.name.as_str()).take(100).collect();
    let there =
        if names.is_empty() { "there are no guides".into() } else { format!("expected one of: {}", names.join(", ")) };
    let mut failure =
        answer::invalid("name", format!("{wanted:?} is not the name of a guide or of a tool in a guide; {there}"));
    if let Some(Value::Object(details)) = &mut failure.details {
        details.insert("guides".into(), json!(names));
    }
    failure
}
