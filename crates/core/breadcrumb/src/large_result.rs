//! What a response has in place of a result that is larger than its caller accepts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The native tools that read the parts of a large result.
pub const LARGE_RESULT_READERS: [&str; 4] =
    ["get_from_working_memory", "result_search", "result_slice", "result_jsonpath"];

/// The `output` of a response whose result is larger than the caller accepts. `metadata` of the
/// response then has `large_result`. The parts are in the working memory of the request's session:
/// the tool `get_from_working_memory` returns each by its key. Without a session the result is cut,
/// and there are no parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LargeResult {
    /// Always `large_result`.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "large_result")]
    pub marker: LargeResultMarker,
    /// What a model reads in place of the result: a markdown table of the parts and how to read
    /// them, or the start of a result that is cut. At most as long as the caller accepts.
    pub text: String,
    /// What the whole result is.
    pub kind: LargeResultKind,
    /// The size of the whole result: of its text, or of its JSON without spaces.
    pub characters: usize,
    /// The result is cut; its rest is lost.
    pub truncated: bool,
    /// The number of parts; 0 if the result is cut.
    pub parts: usize,
    /// The key of the whole result, for the tools `result_search`, `result_slice` and
    /// `result_jsonpath`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// With the number of a part, from 1 to `parts`, at its end: the key of that part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_prefix: Option<String>,
    /// Until when the parts are stored (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LargeResultMarker {
    #[serde(rename = "large_result")]
    LargeResult,
}

/// How the parts form the whole result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LargeResultKind {
    /// Each part is a string. Together, in order, they are the text.
    Text,
    /// Each part is a document with a part of the whole one and everything that encloses it.
    Json,
}

impl LargeResult {
    /// `None` if the output is a whole result.
    pub fn of(output: &Value) -> Option<Self> {
        // Checked first, because most outputs are not one.
        let is_marked = output.get("type").and_then(Value::as_str) == Some("large_result");
        is_marked.then(|| Self::deserialize(output).ok()).flatten()
    }
}

/// An output as a model reads it: a text unchanged, the `text` of a large result, and everything
/// else as JSON.
pub fn model_text(output: &Value) -> Cow<'_, str> {
    match output {
        Value::String(text) => text.into(),
        other => LargeResult::of(other).map_or_else(|| other.to_string(), |large| large.text).into(),
    }
}
