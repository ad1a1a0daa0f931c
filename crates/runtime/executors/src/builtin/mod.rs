//! Runs native tools: `tool.v1` whose implementation is in this program, `{"type": "builtin",
//! "tool": "read_file"}`. Each tool is a [`NativeTool`] in the crate of its family. Time limits,
//! cancellation and secrets are handled here for all of them.

mod failures;
mod input_tool;
mod working_folder;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, Implementation, ToolDefinition, ToolFailure};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Executor, ToolCall, ToolOutput};

pub use failures::{failed, invalid, read_input, refused, store_failed};
pub use input_tool::InputTool;
pub use working_folder::{FolderContent, MAX_ENTRIES};

/// The `implementation.type` that this executor runs.
pub const KIND: &str = "builtin";

/// A tool that is part of the program.
#[async_trait]
pub trait NativeTool: Send + Sync + 'static {
    /// Also the name of its record. Profiles exclude tools by name.
    fn name(&self) -> &'static str;

    /// Where its programs run: `jail` or `pod`. A record can require one of them. `None` for a tool
    /// that runs no programs.
    fn isolation(&self) -> Option<&'static str> {
        None
    }

    /// Completes when the missing requirements of the tool are known.
    async fn ready(&self) {}

    /// What is missing before it can be offered. Each entry is a sentence that says how to provide
    /// it. Empty while this is not known yet.
    fn missing_requirements(&self) -> Vec<String> {
        Vec::new()
    }

    /// The secrets without which it cannot run in this configuration.
    fn required_secrets(&self, definition: &ToolDefinition) -> Vec<String> {
        definition.required_secrets.clone()
    }

    /// Secrets that it uses if they exist and are granted. It also runs without them.
    fn optional_secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs the tool. The future is dropped on cancellation or timeout, and everything it started
    /// must stop with it. `metadata` goes into the response's metadata.
    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure>;
}

/// The native tools of this runner.
#[derive(Default)]
pub struct BuiltinExecutor {
    tools: BTreeMap<&'static str, Arc<dyn NativeTool>>,
    /// Tools that are switched off, each with how to switch it on.
    off: BTreeMap<String, String>,
}

impl BuiltinExecutor {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with(mut self, tools: impl IntoIterator<Item = Arc<dyn NativeTool>>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| (tool.name(), tool)));
        self
    }

    /// Marks a tool as switched off here. `how` says how to switch it on.
    #[must_use]
    pub fn without(mut self, tool: &str, how: impl Into<String>) -> Self {
        self.off.insert(tool.to_owned(), how.into());
        self
    }

    fn tool(&self, definition: &ToolDefinition) -> Result<&Arc<dyn NativeTool>, ToolFailure> {
        let refuse = |message| Err(ToolFailure::new(ErrorCode::ExecutionFailed, message));
        let Implementation::Native(native) = &definition.implementation else {
            return refuse("the tool is code, not a builtin tool".to_owned());
        };
        let wanted = native.settings.get("tool").and_then(Value::as_str).unwrap_or(&definition.name);
        if wanted != definition.name {
            return refuse(format!("implementation.tool is {wanted:?}; it must be the name of the tool"));
        }
        match self.tools.get(wanted) {
            Some(tool) => Ok(tool),
            None => {
                let known: Vec<&str> = self.tools.keys().copied().collect();
                refuse(format!("{wanted:?} is not a builtin tool; expected one of: {}", known.join(", ")))
            }
        }
    }

    fn waits(&self, definition: &ToolDefinition) -> Vec<String> {
        if let Some(how) = self.off.get(&definition.name) {
            return vec![how.clone()];
        }
        let Ok(tool) = self.tool(definition) else { return Vec::new() };
        match (required_isolation(definition), tool.isolation()) {
            (Some(required), None) => vec![format!(
                "Its record requires the isolation {required:?}, but it runs no programs; remove \
                 implementation.isolation."
            )],
            (Some(required), Some(has)) if has != required => vec![format!(
                "Its record requires the isolation {required:?}, and this runner has {has:?} for it. {}",
                match required {
                    "pod" => "Start `rcrt scripts-manager` with --pod-tool for it.",
                    _ => "Start a runner that runs it in a jail.",
                }
            )],
            _ => tool.missing_requirements(),
        }
    }
}

/// `implementation.isolation`: where the record says that the tool's programs must run.
fn required_isolation(definition: &ToolDefinition) -> Option<&str> {
    let Implementation::Native(native) = &definition.implementation else { return None };
    native.settings.get("isolation").and_then(Value::as_str)
}

#[async_trait]
impl Executor for BuiltinExecutor {
    async fn load(
        &self,
        definition: &ToolDefinition,
        _owner_id: Uuid,
        _tool_id: Uuid,
        _tool_version: i64,
    ) -> Result<(), ToolFailure> {
        if self.off.contains_key(&definition.name) {
            return Ok(());
        }
        self.tool(definition)?.ready().await;
        Ok(())
    }

    async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput {
        let mut metadata = Map::new();
        let run = async {
            if let Ok(tool) = self.tool(&call.definition) {
                tool.ready().await;
            }
            let waits = self.waits(&call.definition);
            if !waits.is_empty() {
                let message = format!("the tool {:?} is not ready: {}", call.definition.name, waits.join(" "));
                return Err(ToolFailure::new(ErrorCode::PermissionDenied, message));
            }
            self.tool(&call.definition)?.run(&call, &mut metadata).await
        };
        let result = tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(ToolFailure::new(ErrorCode::Cancelled, "the call was cancelled")),
            result = run => result,
            () = tokio::time::sleep(call.limits.timeout()) => {
                let message = format!("the tool did not end within {} ms", call.limits.timeout_ms);
                Err(ToolFailure::new(ErrorCode::Timeout, message))
            }
        };
        ToolOutput::new(result, metadata).cleared(call.secrets).await
    }

    fn missing_requirements(&self, definition: &ToolDefinition) -> Vec<String> {
        self.waits(definition)
    }

    fn required_secrets(&self, definition: &ToolDefinition) -> Vec<String> {
        self.tool(definition)
            .map_or_else(|_| definition.required_secrets.clone(), |tool| tool.required_secrets(definition))
    }

    fn optional_secrets(&self, definition: &ToolDefinition) -> Vec<String> {
        self.tool(definition).map(|tool| tool.optional_secrets()).unwrap_or_default()
    }

    fn forget(&self, _tool_id: Uuid, _tool_version: i64) {}
}
