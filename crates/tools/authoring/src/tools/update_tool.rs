//! `update_tool`.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{CreationMode, ToolFailure};
use rcrt_executors::builtin::{invalid, read_input};
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::own_tool;
use crate::assessment::Assessor;
use crate::publication::{Publication, merged};

pub(super) struct UpdateTool {
    pub assessor: Arc<Assessor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    changes: BTreeMap<String, Value>,
    if_version: Option<i64>,
}

#[async_trait]
impl NativeTool for UpdateTool {
    fn name(&self) -> &'static str {
        "update_tool"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let Input { name, changes, if_version } = read_input(call)?;
        if changes.get("name").is_some_and(|new| *new != name) {
            return Err(invalid("changes.name", "cannot be changed; create a new tool and retire this one"));
        }
        let own = own_tool(call, &name).await?;
        let spec = merged(own.context, &changes);
        Publication { spec, mode: CreationMode::Update, if_version }.run(&self.assessor, call).await
    }
}
