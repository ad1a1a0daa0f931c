//! The trait by which a runner runs every kind of tool.

use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::{Breadcrumbs, ErrorCode, Limits, Profiles, ToolDefinition, ToolFailure, ToolRequest};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{EffectGate, ProgressSink, TriggerChain, Vault};

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
    /// The tool's `required_secrets`. Whatever the attempt gives back has been cleared of their values.
    pub secrets: Arc<Vault>,
    /// The store in the tool's tenant, with the runner's rights to write, as far as who asked may see.
    pub breadcrumbs: Arc<dyn Breadcrumbs>,
    /// The triggered tools that led to this call; marks what it writes.
    pub chain: TriggerChain,
    /// What the requests that the call writes are bound to as well.
    pub profiles: Profiles,
    pub progress: Arc<dyn ProgressSink>,
    /// When the request's `deadline_ms` has passed: requests that the call writes wait no longer.
    pub deadline: Option<tokio::time::Instant>,
    /// Where it is not given yet, only an executor that [waits for it](Executor::supports_speculation) has the call.
    pub effect_gate: EffectGate,
}

/// How an attempt ended. The output is not yet checked against the tool's output schema.
pub struct ToolOutput {
    pub result: Result<Value, ToolFailure>,
    /// Goes into the response's metadata (`console`, `http_status`, …).
    pub metadata: Map<String, Value>,
    /// What the output uses while it is in memory: the holder of the result keeps it until the
    /// result is written.
    pub hold: Option<Hold>,
}

/// Given back when it is dropped.
pub type Hold = Box<dyn Send + Sync>;

impl ToolOutput {
    pub fn new(result: Result<Value, ToolFailure>, metadata: Map<String, Value>) -> Self {
        Self { result, metadata, hold: None }
    }

    /// The same without the values of the call's secrets. A result may be large: not on a thread that others wait for.
    pub(crate) async fn cleared(mut self, vault: Arc<Vault>) -> Self {
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
            let message = format!("the output cannot be cleared of secrets: {error}");
            Self::new(Err(ToolFailure::new(ErrorCode::ExecutionFailed, message)), Map::new())
        })
    }
}

/// Runs tools of one kind.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Prepares or checks a tool version of this tenant before it is offered; the error is reported
    /// to its author.
    async fn load(
        &self,
        definition: &ToolDefinition,
        owner_id: Uuid,
        tool_id: Uuid,
        tool_version: i64,
    ) -> Result<(), ToolFailure>;

    /// Runs to the end, to the limit, or until cancelled (then the result is `Cancelled`), whichever comes first.
    async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput;

    /// What the tool still waits for before it can be offered, each a sentence that says how to get it: a setting of
    /// the operator, a program on this machine. Secrets are looked at by the runner.
    fn waits_for(&self, _definition: &ToolDefinition) -> Vec<String> {
        Vec::new()
    }

    /// Whether its calls do little but wait for others, in this process: such calls need no worker, and many of them may
    /// be under way at once.
    fn is_io_bound(&self, _definition: &ToolDefinition) -> bool {
        false
    }

    /// Whether a call of the tool does nothing that anybody could notice before its [`EffectGate`] is given, but for what
    /// [it keeps](Executor::keeps_state): then it may begin while its request is still on its way to the disk.
    fn supports_speculation(&self, _definition: &ToolDefinition) -> bool {
        false
    }

    /// Whether the next calls of the tool may find in memory what a call left there.
    fn keeps_state(&self, _definition: &ToolDefinition) -> bool {
        false
    }

    /// The secrets without which the tool cannot run here.
    fn required_secrets(&self, definition: &ToolDefinition) -> Vec<String> {
        definition.required_secrets.clone()
    }

    /// Secrets that the call gets where they are there and granted, and without which the tool runs too.
    fn optional_secrets(&self, _definition: &ToolDefinition) -> Vec<String> {
        Vec::new()
    }

    /// Forgets what was prepared for a tool that is gone or replaced.
    fn forget(&self, tool_id: Uuid, tool_version: i64);
}
