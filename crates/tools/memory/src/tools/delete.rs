//! `delete_from_working_memory`.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{answer, key, memory};

pub(super) struct Delete;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    key: String,
    namespace: Option<String>,
}

#[async_trait]
impl NativeTool for Delete {
    fn name(&self) -> &'static str {
        "delete_from_working_memory"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = answer::read(call)?;
        let key = key(call, &input.key, input.namespace.as_deref())?;
        let deleted = memory(call).delete(&key).await.map_err(answer::store)?;
        Ok(json!({"key": key.path(), "deleted": deleted}))
    }
}
