//! `create_tool`.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{CREATE_TOOL, CreationMode, ToolFailure};
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::assessment::Assessor;
use crate::publication::Publication;

pub(super) struct CreateTool {
    pub assessor: Arc<Assessor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    tool_spec: Map<String, Value>,
    #[serde(default)]
    mode: CreationMode,
    if_version: Option<i64>,
}

#[async_trait]
impl NativeTool for CreateTool {
    fn name(&self) -> &'static str {
        CREATE_TOOL
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Input { tool_spec, mode, if_version } = read_input(call)?;
        Publication { spec: tool_spec, mode, if_version }.run(&self.assessor, call).await
    }
}
