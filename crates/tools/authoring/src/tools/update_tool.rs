//! `update_tool`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{CreationMode, ToolFailure};
use rcrt_executors::builtin::invalid;
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use super::own_tool;
use crate::assessment::Assessor;
use crate::publication::{Publication, merged};

pub(super) struct UpdateTool {
    pub assessor: Arc<Assessor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    name: String,
    changes: BTreeMap<String, Value>,
    if_version: Option<i64>,
}

#[async_trait]
impl InputTool for UpdateTool {
    const NAME: &'static str = "update_tool";
    type Input = Input;

    async fn run(&self, Input { name, changes, if_version }: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        if changes.get("name").is_some_and(|new| *new != name) {
            return Err(invalid("changes.name", "cannot be changed; create a new tool and retire this one"));
        }
        let own = own_tool(call, &name).await?;
        let spec = merged(own.context, &changes);
        Publication { spec, mode: CreationMode::Update, if_version }.run(&self.assessor, call).await
    }
}
