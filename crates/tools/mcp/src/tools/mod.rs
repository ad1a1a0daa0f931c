//! The tools by which agents use and manage MCP servers.

mod content;
mod details;
mod find_tools;
mod invoke_tool;
mod list_services;
mod register;

use std::sync::Arc;

use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::{AllowedTools, BreadcrumbListItem, ErrorCode, ToolFailure, ToolSource, schema_names};
use rcrt_executors::builtin::{read_input, store_failed};
use rcrt_executors::{NativeTool, ToolCall, ToolOutput};
use rmcp::model::{ClientRequest, ServerResult};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::failure::{of_call, unanswered};
use crate::records::{self, server_tag};
use crate::servers::{Server, Servers};

/// `mcp_list_services`, `mcp_get_service_details`, `mcp_invoke_tool`, `mcp_find_tools`,
/// `mcp_list_resources`, `mcp_read_resource`, `mcp_get_prompt`, `mcp_register_server` and
/// `mcp_unregister_server`.
pub fn tools(servers: &Arc<Servers>) -> Vec<Arc<dyn NativeTool>> {
    let of = || Tools { servers: servers.clone() };
    vec![
        Arc::new(list_services::ListServices(of())),
        Arc::new(details::ServiceDetails(of())),
        Arc::new(invoke_tool::InvokeTool(of())),
        Arc::new(find_tools::FindTools(of())),
        Arc::new(content::ListResources(of())),
        Arc::new(content::ReadResource(of())),
        Arc::new(content::GetPrompt(of())),
        Arc::new(register::RegisterServer(of())),
        Arc::new(register::UnregisterServer(of())),
    ]
}

/// What the tools share.
struct Tools {
    servers: Arc<Servers>,
}

/// A registered tool that the caller can call.
struct VisibleTool {
    id: Uuid,
    server: String,
    /// Its name here.
    name: String,
    /// The server's own name for it.
    upstream: String,
    context: Map<String, Value>,
}

impl Tools {
    /// The server with this name, in any case. The error lists the names.
    async fn server(&self, name: &str) -> Result<Arc<Server>, ToolFailure> {
        self.servers.find(name).await.map_err(|error| error.failure(name))
    }

    /// The server, if the call's profiles allow its tools. If they do not, no error lists the
    /// names.
    async fn permitted_server(&self, call: &ToolCall, name: &str) -> Result<Arc<Server>, ToolFailure> {
        let server = self.server(name).await;
        let known = server.as_ref().map_or_else(|_| line(name, 100), |server| server.record.config.name.clone());
        let source = ToolSource::Mcp(known);
        match call.profiles.denied_by(&call.definition.name, &source) {
            None => server,
            Some(profile) => {
                let message = format!("the profile {profile} does not allow the source {source}");
                Err(ToolFailure::new(ErrorCode::PermissionDenied, message))
            }
        }
    }

    /// The registered tools of a server, or of all, that the caller can call.
    async fn visible_tools(&self, call: &ToolCall, server: Option<&str>) -> Result<Vec<VisibleTool>, ToolFailure> {
        let allowed = call.breadcrumbs.allowed_tools().await.map_err(store_failed)?;
        let tags = server.map(server_tag).into_iter().collect();
        // The records are read with the runner's rights: a caller reads only its own calls.
        let items = records::list(&*self.servers.store, schema_names::TOOL_V1, tags).await;
        let items = items.map_err(store_failed)?;
        let mut found: Vec<VisibleTool> =
            items.into_iter().filter_map(|item| visible(call, allowed.as_ref(), item)).collect();
        found.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(found)
    }
}

fn visible(call: &ToolCall, allowed: Option<&AllowedTools>, item: BreadcrumbListItem) -> Option<VisibleTool> {
    let BreadcrumbListItem { id, tags, context, .. } = item;
    let context = context?;
    let implementation = context.get("implementation")?;
    if implementation.get("type")? != crate::KIND {
        return None;
    }
    let text = |fields: &Value, name: &str| Some(fields.get(name)?.as_str()?.to_owned());
    let (server, upstream) = (text(implementation, "server")?, text(implementation, "tool")?);
    let name = context.get("name")?.as_str()?.to_owned();
    let source = ToolSource::Mcp(server.clone());
    let is_denied = call.profiles.denied_by(&name, &source).is_some();
    let is_listed = allowed.is_none_or(|allowed| allowed.allows(&name, &source, &tags));
    (!is_denied && is_listed).then_some(VisibleTool { id, server, name, upstream, context })
}

impl Tools {
    /// Sends a request to a server within the call's time. Returns the result as the protocol has
    /// it, without the secrets that the server got.
    async fn ask(&self, call: &ToolCall, server: &str, request: ClientRequest) -> Result<Value, ToolFailure> {
        let server = self.permitted_server(call, server).await?;
        let name = &server.record.config.name;
        let mut is_repeated = false;
        loop {
            let connection = self.servers.connection(&server).await.map_err(|error| error.failure(name))?;
            // The executor ends the call at its time limit, and on cancellation.
            let answered = connection.request(request.clone(), &*call.progress, std::future::pending()).await;
            let vault = connection.vault.clone();
            let result = match answered {
                None => Err(ToolFailure::new(ErrorCode::Cancelled, "the call was cancelled")),
                Some(Ok(ServerResult::InputRequiredResult(asked))) => Err(unanswered(&asked, name)),
                Some(Ok(result)) => Ok(json!(result)),
                // The next connection has a new token.
                Some(Err(_)) if connection.refused_token().is_some() && !is_repeated => {
                    is_repeated = true;
                    continue;
                }
                Some(Err(error)) => Err(of_call(&error, name, false, &vault)),
            };
            return ToolOutput::new(result, Map::new()).cleared(vault).await.result;
        }
    }
}

/// A member of a result.
fn member(result: &mut Value, name: &str) -> Option<Value> {
    result.get_mut(name).map(Value::take).filter(|value| !value.is_null())
}

fn unexpected_result(server: &str, expected: &str) -> ToolFailure {
    let message = format!("the MCP server {server:?} did not return {expected}");
    ToolFailure::new(ErrorCode::ExecutionFailed, message)
}
