//! The one shape in which a runner sees whatever runs tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::{Breadcrumbs, Limits, ToolDefinition, ToolFailure, ToolRequest};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::Chain;

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
    /// Values of the tool's `required_secrets`, by name.
    pub secrets: BTreeMap<String, String>,
    /// The store, as the runner's agent in the tool's tenant.
    pub breadcrumbs: Arc<dyn Breadcrumbs>,
    /// The triggered tools that led to this call; marks what it writes.
    pub chain: Chain,
}

/// How an attempt ended. The output is not yet checked against the tool's output schema.
pub struct ToolOutput {
    pub result: Result<Value, ToolFailure>,
    /// Goes into the response's metadata (`console`, `http_status`, …).
    pub metadata: Map<String, Value>,
}

/// Runs tools of one kind.
#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Prepares or checks a tool version of this tenant before it is offered; the error is told to its author.
    async fn load(
        &self,
        definition: &ToolDefinition,
        owner_id: Uuid,
        tool_id: Uuid,
        tool_version: i64,
    ) -> Result<(), ToolFailure>;

    /// Runs to the end, to the limit, or until cancelled (then the result is `Cancelled`), whichever comes first.
    async fn execute(&self, call: ToolCall, cancelled: CancellationToken) -> ToolOutput;

    /// Forgets what was prepared for a tool that is gone or replaced.
    fn forget(&self, tool_id: Uuid, tool_version: i64);
}
