//! Which words of a record are indexed for full-text search.

use std::fmt::Write as _;

use rcrt_breadcrumb::{NewBreadcrumb, Sensitivity, schema_names};
use serde_json::{Map, Value};
use uuid::Uuid;

/// How many bytes of a context's strings can be searched. Postgres limits the size of an indexed
/// text, and users do not search for a tool's large output.
const MAX_CONTEXT_WORDS: usize = 16 * 1024;
/// The same for a request or a response: their words are made and indexed with each call.
const MAX_CALL_WORDS: usize = 4 * 1024;
/// How many bytes of numbers are added to these. A result can have very many.
const MAX_NUMBERS: usize = 2 * 1024;
/// Bytes that the words of most requests and responses fit into.
const USUAL_CALL_WORDS: usize = 128;
/// What the runtime adds to a response, and a trace to a request: ids and times, which are not
/// looked up by word. The tag `request:…` has the request's id, and is looked up as a tag.
const NOT_SEARCHED: [&str; 4] = ["metadata", "request_id", "timestamp", "traceparent"];

/// Description and tags, as one text. A tag that names an id, as that of a response, is looked up
/// as a tag: a UUID would be some eight words that no other record has, for which an insert pays
/// more than for all others.
pub(crate) fn label_words(record: &NewBreadcrumb) -> String {
    const SEPARATORS: [char; 3] = [':', '/', '_'];
    let description = record.description.as_deref().unwrap_or_default();
    let tags: usize = record.tags.iter().map(|tag| 2 * (tag.len() + 1)).sum();
    let mut words = String::with_capacity(description.len() + tags);
    words.push_str(description);
    for tag in record.tags.iter().filter(|tag| !names_id(tag)) {
        words.push(' ');
        words.push_str(tag);
        // `workspace:tools` is also found by either half.
        if tag.contains(SEPARATORS) {
            words.push(' ');
            words.extend(tag.chars().map(|char| if SEPARATORS.contains(&char) { ' ' } else { char }));
        }
    }
    words
}

/// Whether the tag ends with a hyphenated UUID.
fn names_id(tag: &str) -> bool {
    const LENGTH: usize = 36;
    tag.len() > LENGTH && tag.rsplit(':').next().is_some_and(|id| id.len() == LENGTH && Uuid::parse_str(id).is_ok())
}

/// The string values of a record's context in their order, up to [`MAX_CONTEXT_WORDS`]; of a call
/// up to [`MAX_CALL_WORDS`], and then the numbers of its input or output. Empty for a secret
/// record.
pub(crate) fn context_words(record: &NewBreadcrumb) -> String {
    if record.sensitivity == Sensitivity::Secret {
        return String::new();
    }
    let body = match record.schema_name.as_deref() {
        Some(schema_names::TOOL_REQUEST) => "input",
        Some(schema_names::TOOL_RESPONSE) => "output",
        _ => return strings(&record.context),
    };
    let mut words = String::with_capacity(USUAL_CALL_WORDS);
    for (_, value) in record.context.iter().filter(|(key, _)| !NOT_SEARCHED.contains(&key.as_str())) {
        gather(value, MAX_CALL_WORDS, &mut words);
    }
    if let Some(body) = record.context.get(body) {
        let most = words.len() + MAX_NUMBERS;
        gather_numbers(body, most, &mut words);
    }
    words
}

/// The string values of a context in their order, up to [`MAX_CONTEXT_WORDS`].
pub(crate) fn strings(context: &Map<String, Value>) -> String {
    let mut words = String::new();
    for value in context.values() {
        gather(value, MAX_CONTEXT_WORDS, &mut words);
    }
    words
}

fn gather(value: &Value, most: usize, words: &mut String) {
    if words.len() >= most {
        return;
    }
    match value {
        Value::String(text) => {
            let end = text.floor_char_boundary(most - words.len());
            words.push_str(&text[..end]);
            words.push(' ');
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, most, words)),
        Value::Object(entries) => entries.values().for_each(|item| gather(item, most, words)),
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
