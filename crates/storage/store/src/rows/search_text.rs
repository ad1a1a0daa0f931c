//! Which words of a record are indexed for full-text search.

use std::fmt::Write as _;

use rcrt_breadcrumb::{NewBreadcrumb, Sensitivity, schema_names};
use serde_json::{Map, Value};

/// How many bytes of a context's strings can be searched. Postgres limits the size of an indexed
/// text, and users do not search for a tool's large output.
const MAX_CONTEXT_WORDS: usize = 16 * 1024;
/// How many bytes of these can be numbers. A result can have very many.
const MAX_NUMBERS: usize = 2 * 1024;

/// Description and tags, as one text.
pub(crate) fn label_words(record: &NewBreadcrumb) -> String {
    let mut words = record.description.clone().unwrap_or_default();
    for tag in &record.tags {
        words.push(' ');
        words.push_str(tag);
        // `workspace:tools` is also found by either half.
        if tag.contains([':', '/', '_']) {
            words.push(' ');
            words.push_str(&tag.replace([':', '/', '_'], " "));
        }
    }
    words
}

/// The string values of a record's context in their order, up to [`MAX_CONTEXT_WORDS`], and then
/// the numbers of a call's input or output. Empty for a secret record.
pub(crate) fn context_words(record: &NewBreadcrumb) -> String {
    if record.sensitivity == Sensitivity::Secret {
        return String::new();
    }
    let mut words = strings(&record.context);
    let body = match record.schema_name.as_deref() {
        Some(schema_names::TOOL_REQUEST) => record.context.get("input"),
        Some(schema_names::TOOL_RESPONSE) => record.context.get("output"),
        _ => None,
    };
    if let Some(body) = body {
        let most = (words.len() + MAX_NUMBERS).min(MAX_CONTEXT_WORDS);
        gather_numbers(body, most, &mut words);
    }
    words
}

/// The string values of a context in their order, up to [`MAX_CONTEXT_WORDS`].
pub(crate) fn strings(context: &Map<String, Value>) -> String {
    let mut words = String::new();
    for value in context.values() {
        gather(value, &mut words);
    }
    words
}

fn gather(value: &Value, words: &mut String) {
    if words.len() >= MAX_CONTEXT_WORDS {
        return;
    }
    match value {
        Value::String(text) => {
            let end = text.floor_char_boundary(MAX_CONTEXT_WORDS - words.len());
            words.push_str(&text[..end]);
            words.push(' ');
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(entries) => entries.values().for_each(|item| gather(item, words)),
        _ => {}
    }
}

/// Adds the numbers of the value, none of them cut, until the words have `most` bytes.
fn gather_numbers(value: &Value, most: usize, words: &mut String) {
    match value {
        _ if words.len() >= most => {}
        Value::Number(number) => {
            let before = words.len();
            // A write to a String does not fail.
            let _ = write!(words, "{number} ");
            if words.len() > most {
                words.truncate(before);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather_numbers(item, most, words)),
        Value::Object(entries) => entries.values().for_each(|item| gather_numbers(item, most, words)),
        _ => {}
    }
}
