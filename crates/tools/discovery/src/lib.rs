//! The tools with which agents find tools and services, so that an agent with thousands of tools
//! needs only a few in its prompt.
//!
//! It deliberately does not know which tools there are, or who can call them: the runner answers by
//! [`rcrt_executors::ToolFinder`]. Tests: `runner/tests/it/discovery.rs`.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::builtin::{invalid, read_input, refused};
use rcrt_executors::{InputTool, NativeTool, ToolCall};
use rcrt_tool_search::Question;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// How many tools are returned, if the call does not say.
const USUAL_TOOLS: usize = 5;
const MAX_TOOLS: usize = 20;

/// All tools of the family.
pub fn tools() -> Vec<Arc<dyn NativeTool>> {
    vec![Arc::new(FindTools), Arc::new(SearchKnownServices)]
}

#[derive(Deserialize)]
struct Input {
    #[serde(default)]
    query: String,
    limit: Option<usize>,
}

impl Input {
    fn question(&self) -> Result<Question, ToolFailure> {
        Question::new("query", &self.query).map_err(|found| refused(&found))
    }
}

struct FindTools;

#[async_trait]
impl InputTool for FindTools {
    const NAME: &'static str = "find_tools";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let limit = input.limit.unwrap_or(USUAL_TOOLS);
        if !(1..=MAX_TOOLS).contains(&limit) {
            return Err(invalid("limit", format!("is {limit}; must be from 1 to {MAX_TOOLS}")));
        }
        let found = call.finder.tools(input.question()?, limit).await?;
        let tools = found.into_iter().map(|(tool, score)| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "source": tool.source,
                "score": rounded(score),
                "parameters": tool.parameters,
            })
        });
        Ok(json!({"tools": tools.collect::<Vec<_>>()}))
    }
}

struct SearchKnownServices;

#[async_trait]
impl NativeTool for SearchKnownServices {
    fn name(&self) -> &'static str {
        "search_known_services"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let found = call.finder.services(read_input::<Input>(call)?.question()?).await?;
        let services = found.into_iter().map(|mut service| {
            service.relevance_score = rounded(service.relevance_score);
            service
        });
        Ok(json!({"results": services.collect::<Vec<_>>()}))
    }
}

/// Three digits are enough to compare.
fn rounded(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}
