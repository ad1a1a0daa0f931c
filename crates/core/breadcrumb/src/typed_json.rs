//! JSON as a type, with violations for people in place of serde's messages.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Violation, intended_field};

/// Reads a value. The violation has the path of the invalid field, from this value on.
pub fn read_typed<T: DeserializeOwned>(value: Value) -> Result<T, Violation> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        type_violation(if path == "." { "" } else { &path }, &error.inner().to_string())
    })
}

/// The violation for serde's message about the value at this path. A missing or unknown field is
/// part of the violation's field.
pub fn type_violation(path: &str, message: &str) -> Violation {
    let quoted = |start: &str| -> Option<(&str, &str)> {
        let (name, rest) = message.strip_prefix(start)?.split_once('`')?;
        Some((name, rest.trim_start_matches([',', ' '])))
    };
    let under = |name: &str| match path {
        "" => name.to_owned(),
        // An unknown field is already the last step of the path.
        _ if path == name || path.ends_with(&format!(".{name}")) => path.to_owned(),
        _ => format!("{path}.{name}"),
    };
    if let Some((name, _)) = quoted("missing field `") {
        return Violation::new(under(name), "is required");
    }
    if let Some((name, rest)) = quoted("unknown field `") {
        let meant = intended_field(name, names(rest));
        let hint = meant.map_or_else(|| rest.to_owned(), |meant| format!("did you mean {meant}?"));
        return Violation::new(under(name), format!("is not a known field; {hint}"));
    }
    if let Some((name, rest)) = quoted("unknown variant `") {
        let known: Vec<&str> = names(rest).collect();
        return Violation::new(path, format!("must be one of {}; {name:?} is not", known.join(", ")));
    }
    Violation::new(path, type_message(message).unwrap_or_else(|| message.to_owned()))
}

/// Of `expected one of `a`, `b``, every second part is a name.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// `must be a whole number, not a string` for `invalid type: string "x", expected u64`.
fn type_message(message: &str) -> Option<String> {
    let is_value = message.starts_with("invalid value: ");
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a map" => "an object",
        "a sequence" => "an array",
        text if text.starts_with("struct ") => "an object",
        text if text.starts_with("enum ") => "a string",
        text if text.starts_with("tuple ") || text.starts_with("a tuple") => "an array",
        other => other,
    };
    let kind = found.split([' ', '`']).next()?;
    let found = match kind {
        // The value itself is what is wrong.
        _ if is_value => found.split('`').nth(1).unwrap_or(found),
        "string" => "a string",
        "integer" | "floating" => "a number",
        "boolean" => "true or false",
        "map" => "an object",
        "sequence" => "an array",
        _ => found,
    };
    Some(format!("must be {expected}, not {found}"))
}
