//! The number of characters of a value as compact JSON, without writing it.

use serde_json::Value;
use text_splitter::ChunkSizer;

pub fn json_chars(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(yes) => 5 - usize::from(*yes),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => 2 + escaped_chars(text),
        Value::Array(items) => 1 + items.len().max(1) + items.iter().map(json_chars).sum::<usize>(),
        Value::Object(members) => {
            let inner = members.iter().map(|(key, value)| 3 + escaped_chars(key) + json_chars(value));
            1 + members.len().max(1) + inner.sum::<usize>()
        }
    }
}

/// Without the quotes.
pub(crate) fn escaped_chars(text: &str) -> usize {
    let spelled = |character| match character {
        '"' | '\\' | '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' => 2,
        '\0'..'\u{20}' => 6,
        _ => 1,
    };
    text.chars().map(spelled).sum()
}

/// Counts text with JSON escapes.
pub(crate) struct Escaped;

impl ChunkSizer for Escaped {
    fn size(&self, chunk: &str) -> usize {
        escaped_chars(chunk)
    }
}
