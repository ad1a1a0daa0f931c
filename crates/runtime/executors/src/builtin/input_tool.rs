//! [`InputTool`]: what most native tools are.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{NativeTool, read_input};
use crate::ToolCall;

/// A native tool whose input is read before it runs, and that adds no metadata to its response.
#[async_trait]
pub trait InputTool: Send + Sync + 'static {
    /// Also the name of its record.
    const NAME: &'static str;
    type Input: DeserializeOwned + Send;

    /// Runs the tool, as [`NativeTool::run`] does.
    async fn run(&self, input: Self::Input, call: &ToolCall) -> Result<Value, ToolFailure>;
}

#[async_trait]
impl<T: InputTool> NativeTool for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        InputTool::run(self, read_input(call)?, call).await
    }
}
