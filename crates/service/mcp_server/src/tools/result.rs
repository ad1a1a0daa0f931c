//! The response of a call as a result of `tools/call`.

use rcrt_breadcrumb::{
    LargeResult, LargeResultKind, ModelCall, Registration, ResponseStatus, ToolFailure, ToolFormat, ToolResponse,
};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Resource};
use serde_json::{Value, json};

use super::listing::has_output_schema;
use crate::resources::memory_uri;

/// The most links to parts of a large result. Its text names the others.
const MAX_LINKS: usize = 100;

/// Every response is a result: a failure is one with `isError`.
pub(crate) fn of_response(tool: &Registration, response: &ToolResponse) -> CallToolResult {
    let has_schema = has_output_schema(tool);
    if response.status == ResponseStatus::Error {
        let code = response.error_code.map_or("ExecutionFailed", |code| code.as_str());
        let error = json!({
            "error_code": code,
            "error": response.error,
            "is_retryable": response.is_retryable.unwrap_or_default(),
            "error_details": response.error_details,
        });
        return failed(written(&tool.name, |call| call.message(response)), has_schema, error);
    }
    let output = response.output.as_ref().unwrap_or(&Value::Null);
    if let Some(mut own) = own_result(output) {
        own.content.extend(response.notice().map(ContentBlock::text));
        if own.structured_content.is_none() && has_schema {
            own.structured_content = Some(output.clone());
        }
        return own;
    }
    let mut result = written(&tool.name, |call| call.message(response));
    let large = LargeResult::of(output);
    let is_plain = matches!(output, Value::String(_) | Value::Null) || large.is_some();
    result.structured_content = (has_schema || !is_plain).then(|| output.clone());
    if let Some(large) = large {
        result.content.extend(links(&large));
    }
    result
}

/// The result of a call for which no request was written.
pub(crate) fn of_failure(tool: &Registration, failure: &ToolFailure) -> CallToolResult {
    let error = json!({
        "error_code": failure.code, "error": failure.message,
        "is_retryable": failure.is_retryable, "error_details": failure.details,
    });
    failed(written(&tool.name, |call| call.failure(failure)), has_output_schema(tool), error)
}

/// Clients check `structuredContent` of a failure against the schema of the output as well, so a
/// tool with a schema has the error only in `_meta`.
fn failed(mut result: CallToolResult, has_schema: bool, error: Value) -> CallToolResult {
    result.structured_content = (!has_schema).then(|| error.clone());
    let mut meta = rmcp::model::MetaObject::new();
    meta.insert("rcrt/error".into(), error);
    result.with_meta(Some(meta))
}

/// What a model reads.
fn written(tool: &str, message: impl Fn(&ModelCall) -> Value) -> CallToolResult {
    let call = ModelCall::read(ToolFormat::Mcp, &JsonObject::from_iter([("name".into(), tool.into())]));
    let result = call.ok().and_then(|call| serde_json::from_value::<CallToolResult>(message(&call)).ok());
    let mut result = result.unwrap_or_else(|| CallToolResult::error(Vec::new()));
    result.result_type = Some(rmcp::model::ResultType::COMPLETE);
    result
}

/// The output of a tool that writes results of MCP itself: `content` with valid blocks, and no
/// field that such a result does not have.
fn own_result(output: &Value) -> Option<CallToolResult> {
    const FIELDS: [&str; 3] = ["content", "structuredContent", "_meta"];
    let members = output.as_object()?;
    if !members.keys().all(|key| FIELDS.contains(&key.as_str())) {
        return None;
    }
    let content: Vec<ContentBlock> = serde_json::from_value(members.get("content")?.clone()).ok()?;
    let mut result = CallToolResult::success(content);
    result.structured_content = members.get("structuredContent").cloned();
    result.meta = members.get("_meta").and_then(|meta| serde_json::from_value(meta.clone()).ok());
    Some(result)
}

fn links(large: &LargeResult) -> Vec<ContentBlock> {
    let Some(prefix) = &large.part_prefix else { return Vec::new() };
    let media_type = match large.kind {
        LargeResultKind::Text => "text/plain",
        LargeResultKind::Json => "application/json",
    };
    let link = |number: usize| {
        let name = format!("Part {number} of {}", large.parts);
        ContentBlock::resource_link(
            Resource::new(memory_uri(&format!("{prefix}{number}")), name).with_mime_type(media_type),
        )
    };
    (1..=large.parts.min(MAX_LINKS)).map(link).collect()
}
