//! Runs tools of the implementation type `mcp`.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::{ErrorCode, Implementation, ToolDefinition, ToolFailure};
use rcrt_executors::{Executor, ToolCall, ToolOutput};
use rmcp::model::{CallToolRequestParams, ServerResult};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::connection::Connection;
use crate::definition::{ANSWERS, STATE};
use crate::failure::of_call;
use crate::output::of_result;
use crate::servers::Servers;

/// The `implementation.type` that this executor runs.
pub const KIND: &str = "mcp";

pub struct McpExecutor {
    servers: Arc<Servers>,
}

/// The settings of a tool's implementation.
struct Target<'d> {
    server: &'d str,
    /// The server's own name for the tool.
    tool: &'d str,
    /// The hash of the definition that was accepted.
    hash: &'d str,
}

impl<'d> Target<'d> {
    fn of(definition: &'d ToolDefinition) -> Result<Self, ToolFailure> {
        let refuse = |message: &str| ToolFailure::new(ErrorCode::ExecutionFailed, message);
        let Implementation::Native(native) = &definition.implementation else {
            return Err(refuse("the tool is code, not a tool of an MCP server"));
        };
        let setting = |name: &str| native.settings.get(name).and_then(Value::as_str);
        match (setting("server"), setting("tool"), setting("definition_hash")) {
            (Some(server), Some(tool), Some(hash)) => Ok(Self { server, tool, hash }),
            _ => Err(refuse("implementation: server, tool and definition_hash are required")),
        }
    }
}

impl McpExecutor {
    pub fn new(servers: Arc<Servers>) -> Self {
        Self { servers }
    }

    /// `None`: `stop` completed first.
    async fn run(&self, call: &ToolCall, stop: impl Future<Output = ()>) -> Option<ToolOutput> {
        let refuse = |failure: ToolFailure| Some(ToolOutput::new(Err(failure), Map::new()));
        let target = match Target::of(&call.definition) {
            Ok(target) => target,
            Err(failure) => return refuse(failure),
        };
        let mut stop = std::pin::pin!(stop);
        let mut is_repeated = false;
        loop {
            let connecting = async {
                let connection = self.connect(target.server).await?;
                let accepted = accepted(&connection, &target).await?;
                Ok((connection, accepted))
            };
            let (connection, accepted) = tokio::select! {
                () = &mut stop => return None,
                connected = connecting => match connected {
                    Ok(connected) => connected,
                    Err(failure) => return refuse(failure),
                },
            };
            let params = match request(&call.input, &target, accepted.takes_answers) {
                Ok(params) => params,
                Err(failure) => return refuse(failure),
            };
            let vault = &connection.vault;
            let mut metadata = Map::new();
            let result = match connection.call(params, &*call.progress, stop.as_mut()).await? {
                // The caller answers, with another call.
                Ok(ServerResult::InputRequiredResult(asked)) if accepted.takes_answers => Ok(json!(asked)),
                Ok(result) => of_result(result, target.server, vault, &mut metadata),
                // The server did nothing. The next connection has a new token.
                Err(_) if connection.refused_token().is_some() && !is_repeated => {
                    is_repeated = true;
                    continue;
                }
                Err(error) => Err(of_call(&error, target.server, accepted.may_repeat, vault)),
            };
            return Some(ToolOutput::new(result, metadata).cleared(vault.clone()).await);
        }
    }

    async fn connect(&self, server: &str) -> Result<Arc<Connection>, ToolFailure> {
        let found = self.servers.find(server).await.map_err(|error| error.failure(server))?;
        self.servers.connection(&found).await.map_err(|error| error.failure(server))
    }
}

/// The parameters of the call. `takes_answers`: some of the input answers a question of the server.
fn request(input: &Value, target: &Target<'_>, takes_answers: bool) -> Result<CallToolRequestParams, ToolFailure> {
    let Value::Object(mut arguments) = input.clone() else {
        let message = "the input of a tool of an MCP server must be an object";
        return Err(ToolFailure::new(ErrorCode::InvalidArguments, message));
    };
    let mut params = CallToolRequestParams::new(target.tool.to_owned());
    if takes_answers {
        params.input_responses = arguments.remove(ANSWERS).and_then(|answers| serde_json::from_value(answers).ok());
        params.request_state = arguments.remove(STATE).and_then(|state| state.as_str().map(str::to_owned));
    }
    Ok(params.with_arguments(arguments))
}

/// What is known of a tool that can be called.
struct Accepted {
    /// A second call has no further effect, according to the server.
    may_repeat: bool,
    takes_answers: bool,
}

/// Refuses the call unless the server's present definition is the accepted one.
async fn accepted(connection: &Connection, target: &Target<'_>) -> Result<Accepted, ToolFailure> {
    let mut list = connection.list();
    if list.tools.get(target.tool).is_none_or(|tool| tool.hash != target.hash) {
        // The list may be old.
        list = connection.refresh().await.map_err(|error| error.failure(target.server))?;
    }
    let details = || json!({"server": target.server, "mcp_tool": target.tool});
    match list.tools.get(target.tool) {
        Some(tool) if tool.hash == target.hash => Ok(Accepted {
            may_repeat: tool.may_be_repeated(),
            takes_answers: tool.takes_answers(connection.questions.elicitation),
        }),
        Some(_) => {
            let message = format!(
                "the MCP server {:?} changed the definition of {:?}, and calls wait until a curator accepts it: \
                 `rcrt mcp diff {2}` shows the difference, `rcrt mcp accept {2}` accepts it",
                target.server, target.tool, target.server
            );
            let mut details = details();
            details["reason"] = "definition_changed".into();
            Err(ToolFailure::new(ErrorCode::PermissionDenied, message).with_details(details))
        }
        None => {
            let names: Vec<&str> = list.tools.keys().map(String::as_str).collect();
            let message = format!(
                "the MCP server {:?} no longer has the tool {:?}; it has: {}",
                target.server,
                target.tool,
                line(&names.join(", "), 4000)
            );
            Err(ToolFailure::new(ErrorCode::ToolNotFound, message).with_details(details()))
        }
    }
}

#[async_trait]
impl Executor for McpExecutor {
    async fn load(
        &self,
        definition: &ToolDefinition,
        _owner_id: Uuid,
        _tool_id: Uuid,
        _tool_version: i64,
    ) -> Result<(), ToolFailure> {
        Target::of(definition).map(drop)
    }

    async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput {
        let within = call.limits.timeout();
        let until = call
            .deadline
            .map_or(within, |deadline| within.min(deadline.saturating_duration_since(tokio::time::Instant::now())));
        let stop = async {
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = tokio::time::sleep(until) => {}
            }
        };
        self.run(&call, stop).await.unwrap_or_else(|| {
            let failure = if cancelled.is_cancelled() {
                ToolFailure::new(ErrorCode::Cancelled, "the call was cancelled")
            } else {
                let message = format!("the tool did not end within {} ms", call.limits.timeout_ms);
                ToolFailure::new(ErrorCode::Timeout, message)
            };
            ToolOutput::new(Err(failure), Map::new())
        })
    }

    fn is_io_bound(&self, _definition: &ToolDefinition) -> bool {
        true
    }

    fn forget(&self, _tool_id: Uuid, _tool_version: i64) {}
}
