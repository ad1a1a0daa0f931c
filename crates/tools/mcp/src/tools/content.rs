//! What else servers have: `mcp_list_resources`, `mcp_read_resource`, and `mcp_get_prompt`, for one
//! prompt of a server or the list of them.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, ListResourcesRequest,
    PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Tools, member};

pub(super) struct ListResources(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {
    server_name: String,
    cursor: Option<String>,
}

#[async_trait]
impl InputTool for ListResources {
    const NAME: &'static str = "mcp_list_resources";
    type Input = ListInput;

    async fn run(&self, ListInput { server_name, cursor }: ListInput, call: &ToolCall) -> Result<Value, ToolFailure> {
        let request = ListResourcesRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
        let mut result = self.0.ask(call, &server_name, ClientRequest::ListResourcesRequest(request)).await?;
        match member(&mut result, "resources") {
            Some(resources) => Ok(json!({"resources": resources, "next_cursor": member(&mut result, "nextCursor")})),
            None => Err(super::unexpected_result(&server_name, "a list of resources")),
        }
    }
}

pub(super) struct ReadResource(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInput {
    server_name: String,
    uri: String,
}

#[async_trait]
impl InputTool for ReadResource {
    const NAME: &'static str = "mcp_read_resource";
    type Input = ReadInput;

    async fn run(&self, ReadInput { server_name, uri }: ReadInput, call: &ToolCall) -> Result<Value, ToolFailure> {
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let mut result = self.0.ask(call, &server_name, ClientRequest::ReadResourceRequest(request)).await?;
        match member(&mut result, "contents") {
            Some(contents) => Ok(json!({"contents": contents})),
            None => Err(super::unexpected_result(&server_name, "a resource")),
        }
    }
}

pub(super) struct GetPrompt(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptInput {
    server_name: String,
    prompt_name: Option<String>,
    arguments: Option<Map<String, Value>>,
}

#[async_trait]
impl InputTool for GetPrompt {
    const NAME: &'static str = "mcp_get_prompt";
    type Input = PromptInput;

    async fn run(&self, input: PromptInput, call: &ToolCall) -> Result<Value, ToolFailure> {
        let PromptInput { server_name, prompt_name, arguments } = input;
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
