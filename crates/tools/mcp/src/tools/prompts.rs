//! `mcp_get_prompt`: one prompt of a server, or the list of them.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, ServerResult};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Tools, read_input};

pub(super) struct GetPrompt(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    server_name: String,
    prompt_name: Option<String>,
    arguments: Option<Map<String, Value>>,
}

#[async_trait]
impl NativeTool for GetPrompt {
    fn name(&self) -> &'static str {
        "mcp_get_prompt"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Input { server_name, prompt_name, arguments } = read_input(call)?;
        let request = match prompt_name {
            None => ClientRequest::ListPromptsRequest(ListPromptsRequest::default()),
            Some(name) => {
                let mut params = GetPromptRequestParams::new(name);
                params.arguments = arguments;
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
        };
        match self.0.ask(call, &server_name, request).await? {
            ServerResult::ListPromptsResult(listed) => Ok(json!({"prompts": listed.prompts})),
            ServerResult::GetPromptResult(prompt) => {
                Ok(json!({"description": prompt.description, "messages": prompt.messages}))
            }
            _ => Err(super::unexpected_result(&server_name, "a prompt")),
        }
    }
}
