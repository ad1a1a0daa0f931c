//! A model's call of a tool, in the format of its API, and the message that the model gets back.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::ToolFormat;
use crate::large_result::model_text;
use crate::{ErrorCode, LargeResult, ResponseStatus, ToolFailure, ToolResponse, Violations, check_numbers};

/// A call as a model writes it.
///
/// - `openai`: one of a message's `tool_calls` (`{id, type: "function", function: {name,
///   arguments}}`), or an item as in `openai-responses`.
/// - `openai-responses`: a `function_call` item of the Responses API (`{call_id, name,
///   arguments}`).
/// - `anthropic`: a content block `{type: "tool_use", id, name, input}`.
/// - `mcp`: the params of `tools/call`, `{name, arguments}`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    reply: Reply,
    /// The tool's name, which can be its name in the format.
    pub name: String,
    /// The field of the call with the name.
    pub name_field: &'static str,
    /// `Err`: the model wrote arguments that are not JSON, or an integer beyond 64 bits. The
    /// message for the model says so, so that it can try again.
    pub input: Result<Value, String>,
}

/// The message that answers a call, with the call's own id.
#[derive(Debug, Clone, PartialEq)]
enum Reply {
    OpenAiMessage { tool_call_id: String },
    OpenAiItem { call_id: String },
    Anthropic { tool_use_id: String },
    Mcp,
}

/// Violations of an error that are quoted in a message.
const MAX_QUOTED: usize = 20;

impl ModelCall {
    /// Reads a call. A violation is a mistake of the program that sends it, not of the model.
    pub fn read(format: ToolFormat, call: &Map<String, Value>) -> Result<Self, Violations> {
        let mut fields = CallFields { found: Violations::default() };
        let read = match format {
            ToolFormat::Rcrt => return Err(Violations::one("format", "rcrt is not the format of a model")),
            ToolFormat::OpenAi | ToolFormat::OpenAiResponses
                if format == ToolFormat::OpenAiResponses || call.contains_key("call_id") =>
            {
                fields.kind(call, "function_call");
                let call_id = fields.text(call, "", "call_id");
                let name = fields.text(call, "", "name");
                let input = fields.arguments("arguments", call.get("arguments"));
                Self { reply: Reply::OpenAiItem { call_id }, name, name_field: "name", input }
            }
            ToolFormat::OpenAi | ToolFormat::OpenAiResponses => {
                fields.kind(call, "function");
                let tool_call_id = fields.text(call, "", "id");
                let none = Map::new();
                let function = call.get("function").and_then(Value::as_object).unwrap_or_else(|| {
                    fields.found.add("function", "is required: an object with name and arguments");
                    &none
                });
                let name = if function.is_empty() { String::new() } else { fields.text(function, "function.", "name") };
                let input = fields.arguments("function.arguments", function.get("arguments"));
                Self { reply: Reply::OpenAiMessage { tool_call_id }, name, name_field: "function.name", input }
            }
            ToolFormat::Anthropic => {
                fields.kind(call, "tool_use");
                let tool_use_id = fields.text(call, "", "id");
                let name = fields.text(call, "", "name");
                let input = Ok(call.get("input").cloned().unwrap_or_else(nothing));
                Self { reply: Reply::Anthropic { tool_use_id }, name, name_field: "name", input }
            }
            ToolFormat::Mcp => {
                if call.contains_key("jsonrpc") {
                    fields.found.add("params", "of the JSON-RPC request is the body; do not send the whole request");
                }
                let name = fields.text(call, "", "name");
                let input = Ok(call.get("arguments").filter(|given| !given.is_null()).cloned().unwrap_or_else(nothing));
                Self { reply: Reply::Mcp, name, name_field: "name", input }
            }
        };
        fields.found.into_result().map(|()| read)
    }

    /// The message with the response.
    pub fn message(&self, response: &ToolResponse) -> Value {
        let with_notice = |mut text: String| {
            if let Some(notice) = response.notice() {
                let _ = write!(text, "\n[{notice}]");
            }
            text
        };
        if response.status == ResponseStatus::Error {
            let code = response.error_code.map_or("ExecutionFailed", ErrorCode::as_str);
            let error = response.error.as_deref().unwrap_or("the tool gave no reason");
            return self.reply(&with_notice(error_text(code, error, response.error_details.as_ref())), None, true);
        }
        let output = response.output.as_ref().unwrap_or(&Value::Null);
        self.reply(&with_notice(model_text(output).into_owned()), Some(output), false)
    }

    /// The message with the failure of a call for which no request was written.
    pub fn failure(&self, failure: &ToolFailure) -> Value {
        self.reply(&error_text(failure.code.as_str(), &failure.message, failure.details.as_ref()), None, true)
    }

    fn reply(&self, text: &str, output: Option<&Value>, is_error: bool) -> Value {
        match &self.reply {
            // OpenAI has no field for errors: the text says it.
            Reply::OpenAiMessage { tool_call_id } => {
                json!({"role": "tool", "tool_call_id": tool_call_id, "content": text})
            }
            Reply::OpenAiItem { call_id } => {
                json!({"type": "function_call_output", "call_id": call_id, "output": text})
            }
            Reply::Anthropic { tool_use_id } => {
                json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": text, "is_error": is_error})
            }
            Reply::Mcp => {
                let mut result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
                // It must be an object. The index of a large result is not the tool's output.
                if let Some(output @ Value::Object(_)) = output.filter(|output| LargeResult::of(output).is_none()) {
                    result["structuredContent"] = output.clone();
                }
                result
            }
        }
    }
}

/// An error with what a model needs to correct its call: also the violations that the message does
/// not name.
fn error_text(code: &str, error: &str, details: Option<&Value>) -> String {
    let mut text = format!("{code}: {error}");
    let violations = details.and_then(|details| details.get("violations")?.as_array());
    for violation in violations.into_iter().flatten().take(MAX_QUOTED) {
        let part = |key: &str| violation.get(key).and_then(Value::as_str).unwrap_or_default();
        let location = if part("path").is_empty() { part("field") } else { part("path") };
        let separator = if location.is_empty() { "" } else { ": " };
        let line = format!("{location}{separator}{}", part("message"));
        if !error.contains(&line) {
            let _ = write!(text, "\n{line}");
        }
    }
    if let Some(cause) = details.and_then(|details| details.get("cause")?.as_str()) {
        let _ = write!(text, "\ncaused by {cause}");
    }
    text
}

struct CallFields {
    found: Violations,
}

impl CallFields {
    /// `type` can be left out, but must not be another kind of content.
    fn kind(&mut self, call: &Map<String, Value>, expected: &str) {
        if call.get("type").is_some_and(|kind| kind != expected) {
            self.found.add("type", format!("must be {expected:?}; this is not a call of a tool"));
        }
    }

    fn text(&mut self, part: &Map<String, Value>, prefix: &str, key: &str) -> String {
        match part.get(key) {
            Some(Value::String(text)) => {
                self.found.text(&format!("{prefix}{key}"), text, 200);
                text.clone()
            }
            Some(_) => {
                self.found.add(format!("{prefix}{key}"), "must be a string");
                String::new()
            }
            None => {
                self.found.add(format!("{prefix}{key}"), "is required");
                String::new()
            }
        }
    }

    /// JSON as text. Some servers with OpenAI's API send the object itself, or an empty text for a
    /// tool without input.
    fn arguments(&mut self, field: &str, arguments: Option<&Value>) -> Result<Value, String> {
        match arguments {
            None | Some(Value::Null) => Ok(nothing()),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(nothing()),
            Some(Value::String(text)) => {
                let read =
                    serde_json::from_str(text).map_err(|error| format!("the arguments are not valid JSON: {error}"))?;
                check_numbers(text.as_bytes()).map_err(|found| format!("the arguments cannot be read: {found}"))?;
                Ok(read)
            }
            Some(object @ Value::Object(_)) => Ok(object.clone()),
            Some(_) => {
                self.found.add(field, "must be a string of JSON");
                Ok(nothing())
            }
        }
    }
}

fn nothing() -> Value {
    Value::Object(Map::new())
}
