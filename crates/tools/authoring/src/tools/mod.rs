//! The tools.

mod create_tool;
mod own_tools;
mod test_tool;
mod update_tool;

use std::sync::Arc;

use rcrt_breadcrumb::{Breadcrumb, ErrorCode, ToolFailure};
use rcrt_executors::builtin::store_failed;
use rcrt_executors::{NativeTool, ToolCall};

use crate::assessment::Assessor;
use crate::owned_tools::ToolsOfName;

/// The tools that make tools. They try them with this assessor.
pub fn tools(assessor: Arc<Assessor>) -> Vec<Arc<dyn NativeTool>> {
    vec![
        Arc::new(create_tool::CreateTool { assessor: assessor.clone() }),
        Arc::new(update_tool::UpdateTool { assessor: assessor.clone() }),
        Arc::new(test_tool::TestTool { assessor }),
        Arc::new(own_tools::DescribeTool),
        Arc::new(own_tools::ListMyTools),
        Arc::new(own_tools::RetireTool),
    ]
}

/// The agent's own tool of this name.
async fn own_tool(call: &ToolCall, name: &str) -> Result<Breadcrumb, ToolFailure> {
    let found = ToolsOfName::find(&*call.breadcrumbs, call.request.agent_id, name).await.map_err(store_failed)?;
    found.own.ok_or_else(|| {
        let (code, why) = if found.other.is_some() {
            (ErrorCode::PermissionDenied, format!("the tool {name:?} belongs to another author"))
        } else {
            let why = format!("you have no tool {name:?}; list_my_tools returns the names of yours");
            (ErrorCode::InvalidArguments, why)
        };
        ToolFailure::new(code, why)
    })
}
