//! The output of a tool that a command calls for its own work.

use anyhow::Context;
use rcrt_breadcrumb::{Breadcrumbs, ToolRequest, ToolResponse};
use rcrt_pending_call::{self as pending_call, NoObserver};
use serde_json::Value;

use crate::exit::Failure;
use crate::output::Output;

/// Calls the tool, and waits for a runner to run it.
pub(super) async fn tool_output(
    store: &dyn Breadcrumbs,
    output: Output,
    tool: &str,
    input: Value,
) -> anyhow::Result<Value> {
    let asked = pending_call::send_once(store, ToolRequest::record(tool, input, None, None)).await?;
    let response = pending_call::response(store, &asked, &NoObserver).await?;
    let response = ToolResponse::from_context(&response.context).context("the response cannot be read")?;
    if let Some(failure) = response.error {
        output.note(&failure);
        return Err(Failure::ToolError(failure).into());
    }
    Ok(response.output.unwrap_or_default())
}
