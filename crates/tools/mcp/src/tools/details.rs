//! `mcp_get_service_details`: the tools of a server with their schemas.

use async_trait::async_trait;
use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Tools, VisibleTool, store_failed};
use crate::records::{self, RefusedTool};

pub(super) struct ServiceDetails(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    server_name: String,
    tool_name: Option<String>,
    #[serde(default)]
    refresh: bool,
}

#[async_trait]
impl InputTool for ServiceDetails {
    const NAME: &'static str = "mcp_get_service_details";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let Input { server_name, tool_name, refresh } = input;
        let server = self.0.permitted_server(call, &server_name).await?;
        let name = &server.record.config.name;
        let mut refused = Vec::new();
        if refresh {
            let connection = self.0.servers.connection(&server).await.map_err(|error| error.failure(name))?;
            let list = connection.refresh().await.map_err(|error| error.failure(name))?;
            refused.extend(list.refused.iter().map(|(tool, reason)| RefusedTool::new(tool, reason)));
        }
        let mut tools = self.0.visible_tools(call, Some(name)).await?;
        if let Some(wanted) = tool_name {
            tools = vec![only(tools, name, &wanted)?];
        }
        let statuses = records::statuses(&*self.0.servers.store).await.map_err(store_failed)?;
        let status = statuses.get(&name.to_lowercase());
        // The state may be older than the list, and says more: which names collide here.
        for known in status.into_iter().flat_map(|status| &status.refused) {
            if !refused.iter().any(|refused| refused.tool == known.tool) {
                refused.push(known.clone());
            }
        }
        Ok(json!({
            "serverName": name,
            "state": status.map_or("connecting", |status| status.state.as_str()),
            "error": status.and_then(|status| status.error.clone()),
            "instructions": status.and_then(|status| status.instructions.clone()),
            "waiting": status.map(|status| status.waiting.clone()).unwrap_or_default(),
            "refused": refused,
            "tools": tools.iter().map(describe).collect::<Vec<Value>>(),
        }))
    }
}

/// The tool of a server with this own name or name here, in any case. The error lists the names.
pub(super) fn only(mut tools: Vec<VisibleTool>, server: &str, wanted: &str) -> Result<VisibleTool, ToolFailure> {
    let is_exact = |tool: &VisibleTool| tool.upstream == wanted || tool.name == wanted;
    let is_same =
        |tool: &VisibleTool| tool.upstream.eq_ignore_ascii_case(wanted) || tool.name.eq_ignore_ascii_case(wanted);
    match tools.iter().position(is_exact).or_else(|| tools.iter().position(is_same)) {
        Some(index) => Ok(tools.swap_remove(index)),
        None => Err(unknown_tool(server, wanted, &tools)),
    }
}

fn unknown_tool(server: &str, wanted: &str, tools: &[VisibleTool]) -> ToolFailure {
    let names: Vec<&str> = tools.iter().map(|tool| tool.upstream.as_str()).collect();
    let shown = if names.is_empty() { "none".to_owned() } else { line(&names.join(", "), 4000) };
    let wanted = line(wanted, 100);
    let message = format!("tool_name: the MCP server {server:?} has no tool {wanted:?}; its tools are: {shown}");
    ToolFailure::new(ErrorCode::InvalidArguments, message).with_details(json!({"server": server, "tools": names}))
}

pub(super) fn describe(tool: &VisibleTool) -> Value {
    let definition = tool.context.get("definition");
    let part = |name: &str| definition.and_then(|definition| definition.get(name)).cloned();
    let mut shown = json!({
        "name": tool.name,
        "tool_name": tool.upstream,
        "description": tool.context.get("description"),
        "inputSchema": part("inputSchema"),
        "annotations": tool.context.get("annotations"),
    });
    if let Some(output) = part("outputSchema") {
        shown["outputSchema"] = output;
    }
    shown
}
