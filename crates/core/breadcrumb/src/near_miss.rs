//! Recognizes a field that was written under another name: misspelled, in another case, or as other
//! APIs call it.

use crate::nearest::edits;

/// Names of other APIs, in lower case and without separators, for fields of a request, a record
/// or a tool.
const OTHER_NAMES: [(&str, &[&str]); 16] = [
    ("input", &["args", "arguments", "params", "parameters", "inputs", "toolinput", "payload"]),
    ("requestId", &["reqid", "callid", "toolcallid", "tooluseid", "correlationid"]),
    ("session", &["sessionid", "conversation", "conversationid", "threadid"]),
    ("model", &["modelname", "modelid"]),
    ("max_result_chars", &["maxchars", "maxcharacters", "maxresultcharacters", "maxoutputchars"]),
    ("deadline_ms", &["deadline", "timeout", "timeoutms"]),
    ("version", &["toolversion", "recordversion"]),
    ("definition_hash", &["toolhash"]),
    ("schema_name", &["schema", "schemaid"]),
    ("title", &["name"]),
    ("description", &["desc", "summary", "about"]),
    ("input_schema", &["inputs", "parameters", "params", "args", "arguments"]),
    ("output_schema", &["outputs", "returns"]),
    ("required_secrets", &["secrets"]),
    ("examples", &["tests", "testcases"]),
    ("timeout_ms", &["timeout"]),
];
/// A longer name is not compared.
const MAX_CHARS: usize = 40;

/// The field that the author of `name` probably meant, if it is not one of `known`.
pub fn intended_field<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if name.len() > MAX_CHARS {
        return None;
    }
    let folded_name = folded(name);
    let letters: Vec<char> = folded_name.chars().collect();
    // Two letters of a short name are half of it.
    let most = if letters.len() >= 8 { 2 } else { 1 };
    let distance = |field: &'k str| {
        let others = OTHER_NAMES.iter().find(|(meant, _)| *meant == field).map_or(&[][..], |(_, others)| others);
        let is_same = folded(field) == folded_name || others.contains(&folded_name.as_str());
        let letters_of_field: Vec<char> = folded(field).chars().collect();
        if is_same { 0 } else { edits(&letters, &letters_of_field) }
    };
    let nearest = known.into_iter().map(|field| (distance(field), field)).min()?;
    (nearest.0 <= most && letters.len() > 2).then_some(nearest.1)
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}
