//! `create_tool`.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{CREATE_TOOL, CreationMode, ToolFailure};
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::assessment::Assessor;
use crate::publication::Publication;

pub(super) struct CreateTool {
    pub assessor: Arc<Assessor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    tool_spec: Map<String, Value>,
    #[serde(default)]
    mode: CreationMode,
    if_version: Option<i64>,
}

#[async_trait]
impl InputTool for CreateTool {
    const NAME: &'static str = CREATE_TOOL;
    type Input = Input;

    async fn run(&self, Input { tool_spec, mode, if_version }: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        Publication { spec: tool_spec, mode, if_version }.run(&self.assessor, call).await
    }
}
