//! Tools that this process leaves to other runners.

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolDefinition, ToolFailure};
use rcrt_executors::{Executor, ToolCall, ToolOutput};
use serde_json::Map;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Runs nothing.
pub struct Elsewhere {
    /// A sentence that says which runner runs such tools.
    pub why: &'static str,
}

#[async_trait]
impl Executor for Elsewhere {
    async fn load(
        &self,
        _definition: &ToolDefinition,
        _owner: Uuid,
        _tool: Uuid,
        _version: i64,
    ) -> Result<(), ToolFailure> {
        Ok(())
    }

    async fn execute(&self, _call: ToolCall, _cancelled: CancellationToken) -> ToolOutput {
        ToolOutput::new(Err(ToolFailure::new(ErrorCode::PermissionDenied, self.why)), Map::new())
    }

    fn missing_requirements(&self, _definition: &ToolDefinition) -> Vec<String> {
        vec![self.why.to_owned()]
    }

    fn forget(&self, _tool_id: Uuid, _tool_version: i64) {}
}
