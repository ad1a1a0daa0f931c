//! `mcp_get_prompt`: one prompt of a server, or the list of them.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Tools, member, read_input};

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
        let is_list = matches!(request, ClientRequest::ListPromptsRequest(_));
        let mut result = self.0.ask(call, &server_name, request).await?;
        let parts = member(&mut result, if is_list { "prompts" } else { "messages" });
        match parts {
            Some(prompts) if is_list => Ok(json!({"prompts": prompts})),
            Some(messages) => Ok(json!({"description": member(&mut result, "description"), "messages": messages})),
            None => Err(super::unexpected_result(&server_name, "a prompt")),
        }
    }
}
