//! The trait by which a runner runs every kind of tool.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{Breadcrumbs, ErrorCode, Limits, Profiles, ToolDefinition, ToolFailure, ToolRequest};
use rcrt_egress::{Origin, RequestObserver, Vault};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{CallDebug, ChildCallHost, EffectGate, ToolFinder, TriggerChain};

/// One attempt to run one tool.
#[derive(Clone)]
pub struct ToolCall {
    pub owner_id: Uuid,
    /// The tool's record and version: a key for what an executor prepares per version.
    pub tool_id: Uuid,
    pub tool_version: i64,
    pub definition: Arc<ToolDefinition>,
    pub limits: Limits,
    pub request: ToolRequest,
    /// Valid against the tool's input schema.
    pub input: Value,
    /// The values of the tool's `required_secrets`. They are redacted from everything the attempt
    /// returns.
    pub secrets: Arc<Vault>,
    /// The store of the tool's tenant. It reads what the caller can see and writes with the
    /// runner's rights.
    pub breadcrumbs: Arc<dyn Breadcrumbs>,
    /// The triggered tools that led to this call; marks what it writes.
    pub chain: TriggerChain,
    /// The profiles that bound the call. The requests that it writes are bound to them too.
    pub profiles: Profiles,
    pub progress: Arc<dyn ProgressSink>,
    /// The end of the request's `deadline_ms`. Requests that the call writes wait no longer than
    /// this.
    pub deadline: Option<tokio::time::Instant>,
    /// What the runner does while the call waits for a call that it made.
    pub child_calls: Arc<dyn ChildCallHost>,
    /// The tools and services that the caller can call.
    pub finder: Arc<dyn ToolFinder>,
    /// If it is still closed, only an executor that [waits for it](Executor::supports_speculation)
    /// gets the call.
    pub effect_gate: EffectGate,
    /// For a request with `debug`: records what the attempt does.
    pub debug: Option<Arc<CallDebug>>,
}

impl ToolCall {
    /// What receives its requests to the network.
    pub fn request_observer(&self) -> Option<Arc<dyn RequestObserver>> {
        self.debug.clone().map(|debug| -> Arc<dyn RequestObserver> { debug })
    }
}

impl From<&ToolCall> for Origin {
    fn from(call: &ToolCall) -> Self {
        Self {
            owner_id: call.owner_id,
            agent_id: call.request.agent_id,
            tool_id: Some(call.tool_id),
            call: Some(call.request.id),
        }
    }
}

/// How an attempt ended. The output is not yet checked against the tool's output schema.
pub struct ToolOutput {
    pub result: Result<Value, ToolFailure>,
    /// Goes into the response's metadata (`console`, `http_status`, …).
    pub metadata: Map<String, Value>,
    /// Memory budget that the output uses. The holder of the result keeps it until the result is
    /// written.
    pub hold: Option<Hold>,
}

/// Released on drop.
pub type Hold = Box<dyn Send + Sync>;

impl ToolOutput {
    pub fn new(result: Result<Value, ToolFailure>, metadata: Map<String, Value>) -> Self {
        Self { result, metadata, hold: None }
    }

    /// The same without the values of these secrets. A result can be large, so it is redacted on a
    /// separate thread.
    pub async fn cleared(mut self, vault: Arc<Vault>) -> Self {
        if vault.is_empty() {
            return self;
        }
        let clear = move || {
            let outward = vault.outward();
            match &mut self.result {
                Ok(output) => outward.json(output),
                Err(failure) => outward.failure(failure),
            }
            outward.fields(&mut self.metadata);
            self
        };
        tokio::task::spawn_blocking(clear).await.unwrap_or_else(|error| {
            let message = format!("the secrets cannot be redacted from the output: {error}");
            Self::new(Err(ToolFailure::new(ErrorCode::ExecutionFailed, message)), Map::new())
        })
    }
}

/// Runs tools of one kind.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Prepares or checks a valid tool version of this tenant before it is offered; the error is
    /// reported to its author.
    async fn load(
        &self,
        definition: &ToolDefinition,
        owner_id: Uuid,
        tool_id: Uuid,
        tool_version: i64,
    ) -> Result<(), ToolFailure>;

    /// Runs until the tool finishes, reaches a limit or is cancelled (the result is then
    /// `Cancelled`).
    async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput;

    /// What is missing before the tool can be offered: a setting of the operator, a program on this
    /// machine. Each entry is a sentence that says how to provide it. The runner checks secrets
    /// itself.
    fn missing_requirements(&self, _definition: &ToolDefinition) -> Vec<String> {
        Vec::new()
    }

    /// Whether its calls mostly wait for I/O in this process. Such calls need no worker, and many
    /// of them can run at once.
    fn is_io_bound(&self, _definition: &ToolDefinition) -> bool {
        false
    }

    /// Whether a call has no visible effect before its [`EffectGate`] opens, except for [state that
    /// it keeps](Executor::keeps_state). Such a call can start before its request is on disk.
    fn supports_speculation(&self, _definition: &ToolDefinition) -> bool {
        false
    }

    /// Whether later calls of the tool can see state that a call left in memory.
    fn keeps_state(&self, _definition: &ToolDefinition) -> bool {
        false
    }

    /// The secrets without which the tool cannot run on this runner.
    fn required_secrets(&self, definition: &ToolDefinition) -> Vec<String> {
        definition.required_secrets.clone()
    }

    /// Secrets that the call gets if they exist and are granted. The tool also runs without them.
    fn optional_secrets(&self, _definition: &ToolDefinition) -> Vec<String> {
        Vec::new()
    }

    /// Drops what was prepared for a tool version that was deleted or replaced.
    fn forget(&self, tool_id: Uuid, tool_version: i64);
}

/// Where a call reports its progress. Frequent calls are cheap: the reader samples the newest
/// report.
pub trait ProgressSink: Send + Sync + 'static {
    /// `fraction` is from 0 to 1, or `None` if unknown. The message is one line for a
    /// person.
    fn report(&self, fraction: Option<f64>, message: &str);
}

/// Discards all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscardProgress;

impl ProgressSink for DiscardProgress {
    fn report(&self, _fraction: Option<f64>, _message: &str) {}
}
