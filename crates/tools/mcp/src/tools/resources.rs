//! `mcp_list_resources` and `mcp_read_resource`.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use rmcp::model::{
    ClientRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Tools, member, read_input};

pub(super) struct ListResources(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListInput {
    server_name: String,
    cursor: Option<String>,
}

#[async_trait]
impl NativeTool for ListResources {
    fn name(&self) -> &'static str {
        "mcp_list_resources"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let ListInput { server_name, cursor } = read_input(call)?;
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
struct ReadInput {
    server_name: String,
    uri: String,
}

#[async_trait]
impl NativeTool for ReadResource {
    fn name(&self) -> &'static str {
        "mcp_read_resource"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let ReadInput { server_name, uri } = read_input(call)?;
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let mut result = self.0.ask(call, &server_name, ClientRequest::ReadResourceRequest(request)).await?;
        match member(&mut result, "contents") {
            Some(contents) => Ok(json!({"contents": contents})),
            None => Err(super::unexpected_result(&server_name, "a resource")),
        }
    }
}
