//! `mcp_list_resources` and `mcp_read_resource`.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use rmcp::model::{
    ClientRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
    ServerResult,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Tools, read_input};

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
        match self.0.ask(call, &server_name, ClientRequest::ListResourcesRequest(request)).await? {
            ServerResult::ListResourcesResult(listed) => {
                Ok(json!({"resources": listed.resources, "next_cursor": listed.next_cursor}))
            }
            _ => Err(super::unexpected_result(&server_name, "a list of resources")),
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
        match self.0.ask(call, &server_name, ClientRequest::ReadResourceRequest(request)).await? {
            ServerResult::ReadResourceResult(read) => Ok(json!({"contents": read.contents})),
            _ => Err(super::unexpected_result(&server_name, "a resource")),
        }
    }
}
