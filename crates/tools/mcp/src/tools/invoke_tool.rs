//! `mcp_invoke_tool`: calls a tool by the names of its server and its own. It writes an ordinary
//! request for the registered tool, so that the same rules apply as to any other call of it.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall, call_tool};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::details::only;
use super::{Tools, read_input};

pub(super) struct InvokeTool(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    server_name: String,
    tool_name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[async_trait]
impl NativeTool for InvokeTool {
    fn name(&self) -> &'static str {
        "mcp_invoke_tool"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Input { server_name, tool_name, arguments } = read_input(call)?;
        let server = self.0.permitted_server(call, &server_name).await?;
        let name = &server.record.config.name;
        let tool = only(self.0.visible_tools(call, Some(name)).await?, name, &tool_name)?;
        call_tool(call, &tool.name, Value::Object(arguments)).await
    }
}
