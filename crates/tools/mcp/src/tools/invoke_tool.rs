//! `mcp_invoke_tool`: calls a tool by the names of its server and its own. It writes an ordinary
//! request for the registered tool, so that the same rules apply as to any other call of it.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall, call_tool};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Tools;
use super::details::only;

pub(super) struct InvokeTool(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    server_name: String,
    tool_name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[async_trait]
impl InputTool for InvokeTool {
    const NAME: &'static str = "mcp_invoke_tool";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let Input { server_name, tool_name, arguments } = input;
        let server = self.0.permitted_server(call, &server_name).await?;
        let name = &server.record.config.name;
        let tool = only(self.0.visible_tools(call, Some(name)).await?, name, &tool_name)?;
        call_tool(call, &tool.name, Value::Object(arguments)).await
    }
}
