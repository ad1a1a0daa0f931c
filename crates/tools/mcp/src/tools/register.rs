//! `mcp_register_server` and `mcp_unregister_server`.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::builtin::{invalid, refused};
use rcrt_executors::{InputTool, NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Tools, read_input, store_failed};
use crate::records::{self, server_record};
use crate::server::ServerConfig;

/// The tag of servers that were registered by a tool. Only these can be unregistered by one.
const RUNTIME_TAG: &str = "mcp:runtime";

pub(super) struct RegisterServer(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    server_name: String,
    command: Option<String>,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    network: bool,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl Input {
    fn config(self) -> Result<ServerConfig, ToolFailure> {
        let transport = match (self.command, self.url) {
            (Some(command), None) => {
                json!({"type": "stdio", "command": command, "args": self.arguments, "env": self.env, "network": self.network})
            }
            (None, Some(url)) => json!({"type": "http", "url": url, "headers": self.headers}),
            _ => return Err(invalid("", "must have either command or url")),
        };
        let context = json!({"name": self.server_name, "transport": transport});
        let context = context.as_object().cloned().unwrap_or_default();
        ServerConfig::read(&context).map_err(|mut violations| {
            for violation in &mut violations.0 {
                let field = violation.field.trim_start_matches("transport.").to_owned();
                violation.field = if field == "name" { "server_name".to_owned() } else { field };
            }
            refused(&violations)
        })
    }
}

/// Only for curators with the profile main.
async fn check_rights(call: &ToolCall) -> Result<(), ToolFailure> {
    let denied = |message: String| Err(ToolFailure::new(ErrorCode::PermissionDenied, message));
    if let Some(profile) = call.profiles.iter().next() {
        return denied(format!("the profile {profile} does not allow the registration of MCP servers; it needs main"));
    }
    if !call.breadcrumbs.is_curator().await.map_err(store_failed)? {
        return denied("only an agent with the role curator can register MCP servers".to_owned());
    }
    Ok(())
}

#[async_trait]
impl NativeTool for RegisterServer {
    fn name(&self) -> &'static str {
        "mcp_register_server"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let config = read_input::<Input>(call)?.config()?;
        check_rights(call).await?;
        let (servers, name) = (&self.0.servers, config.name.clone());
        let known = records::servers(&*servers.store).await.map_err(store_failed)?;
        if known.iter().any(|known| known.config.name.eq_ignore_ascii_case(&name)) {
            let message = format!("there is already an MCP server {name:?}; unregister it first, or use another name");
            return Err(invalid("server_name", message));
        }
        let mut record = server_record(&config);
        record.tags.push(RUNTIME_TAG.to_owned());
        let runs = config.transport.describe();
        servers.store.create(record, None).await.map_err(store_failed)?;
        let server = self.0.server(&name).await?;
        // The record stays: the server may come up later.
        let connected = servers.connection(&server).await;
        Ok(match connected {
            Ok(connection) => {
                let tools: Vec<String> = connection.list().tools.keys().cloned().collect();
                json!({"serverName": name, "runs": runs, "state": "connected", "toolCount": tools.len(), "toolNames": tools})
            }
            Err(error) => json!({
                "serverName": name,
                "runs": runs,
                "state": "error",
                "error": error.to_string(),
                "toolCount": 0,
                "toolNames": [],
            }),
        })
    }
}

pub(super) struct UnregisterServer(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnregisterInput {
    server_name: String,
}

#[async_trait]
impl InputTool for UnregisterServer {
    const NAME: &'static str = "mcp_unregister_server";
    type Input = UnregisterInput;

    async fn run(&self, input: UnregisterInput, call: &ToolCall) -> Result<Value, ToolFailure> {
        check_rights(call).await?;
        let server = self.0.server(&input.server_name).await?;
        let (store, id) = (&self.0.servers.store, server.record.id);
        let record = store.get(id).await.map_err(store_failed)?;
        let name = &server.record.config.name;
        if !record.tags.iter().any(|tag| tag == RUNTIME_TAG) {
            let message = format!(
                "the MCP server {name:?} was not registered by a tool; an operator removes it with `rcrt mcp remove {name}`"
            );
            return Err(ToolFailure::new(ErrorCode::PermissionDenied, message));
        }
        store.delete(id, None).await.map_err(store_failed)?;
        Ok(json!({"serverName": name, "unregistered": true}))
    }
}
