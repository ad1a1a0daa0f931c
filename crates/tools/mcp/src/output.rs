//! What a call of a server's tool returns.

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_egress::Vault;
use rmcp::model::{CallToolResult, ServerResult};
use serde_json::{Map, Value, json};

use crate::failure::unanswered;
use crate::text::redacted;

/// The most characters of an error.
const MAX_ERROR: usize = 8000;

/// The output of the tool: its structured content; else its text, if it returned nothing else; else
/// the parts, `{"content": […]}`, as the protocol has them. Parts beside structured content are in
/// the metadata. The secrets of the vault are redacted from an error, which is cut, and from
/// nothing else.
pub fn of_result(
    result: ServerResult,
    server: &str,
    vault: &Vault,
    metadata: &mut Map<String, Value>,
) -> Result<Value, ToolFailure> {
    let failed =
        |message: String| ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(json!({"server": server}));
    let CallToolResult { content, structured_content, is_error, .. } = match result {
        ServerResult::CallToolResult(result) => result,
        ServerResult::EmptyResult(_) => CallToolResult::default(),
        ServerResult::InputRequiredResult(asked) => return Err(unanswered(&asked, server)),
        _ => return Err(failed(format!("the MCP server {server:?} did not return the result of a tool"))),
    };
    let parts: Vec<Value> = content.iter().filter_map(|part| serde_json::to_value(part).ok()).collect();
    let is_text = |part: &Value| part.get("type").is_some_and(|kind| kind == "text");
    let texts: Vec<&str> =
        parts.iter().filter(|part| is_text(part)).filter_map(|part| part.get("text")?.as_str()).collect();
    if is_error == Some(true) {
        let text = redacted(&texts.join("\n"), MAX_ERROR, vault);
        let message = if text.is_empty() { "the tool failed without a message".to_owned() } else { text };
        let mut details = json!({"server": server});
        if let Some(structured) = structured_content.filter(|value| value.to_string().len() <= 64 * 1024) {
            details["structured_content"] = structured;
        }
        return Err(ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(details));
    }
    let has_only_text = texts.len() == parts.len();
    if let Some(structured) = structured_content {
        if !has_only_text {
            let others: Vec<&Value> = parts.iter().filter(|part| !is_text(part)).collect();
            metadata.insert("parts".into(), json!(others));
        }
        return Ok(structured);
    }
    Ok(if has_only_text { texts.join("\n").into() } else { json!({"content": parts}) })
}
