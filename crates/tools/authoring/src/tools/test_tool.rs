//! `test_tool`.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::builtin::{invalid, read_input};
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::own_tool;
use crate::assessment::Assessor;
use crate::reports::shown;

pub(super) struct TestTool {
    pub assessor: Arc<Assessor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: Option<String>,
    tool_spec: Option<Map<String, Value>>,
}

#[async_trait]
impl NativeTool for TestTool {
    fn name(&self) -> &'static str {
        "test_tool"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let spec = match read_input(call)? {
            Input { name: None, tool_spec: Some(spec) } => spec,
            Input { name: Some(name), tool_spec: None } => own_tool(call, &name).await?.context,
            _ => return Err(invalid("input", "must have either name or tool_spec")),
        };
        let (assessment, _) = self.assessor.assess(call.owner_id, &spec, &CancellationToken::new()).await;
        Ok(json!({
            "passed": assessment.is_ok(),
            "validation": assessment.validation(),
            "examples": shown(&assessment.examples),
        }))
    }
}
