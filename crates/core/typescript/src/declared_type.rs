//! TypeScript's types as text: unions, intersections, literals, keys and comments.

use std::collections::BTreeSet;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeclaredType {
    Unknown,
    Never,
    /// A type that needs no parentheses.
    One(String),
    /// Types with `|` or `&` between them.
    Several(String),
}

impl DeclaredType {
    pub fn union(choices: impl IntoIterator<Item = Self>) -> Self {
        let choices: Vec<Self> = choices.into_iter().filter(|choice| *choice != Self::Never).collect();
        if choices.contains(&Self::Unknown) { Self::Unknown } else { Self::joined(&choices, " | ", Self::Never) }
    }

    pub fn intersection(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts: Vec<Self> = parts.into_iter().filter(|part| *part != Self::Unknown).collect();
        if parts.contains(&Self::Never) { Self::Never } else { Self::joined(&parts, " & ", Self::Unknown) }
    }

    fn joined(types: &[Self], sign: &str, empty: Self) -> Self {
        let mut seen = BTreeSet::new();
        let different: Vec<&Self> = types.iter().filter(|one| seen.insert(one.text())).collect();
        match different.as_slice() {
            [] => empty,
            [one] => (*one).clone(),
            several => Self::Several(several.iter().map(|one| one.part()).collect::<Vec<_>>().join(sign)),
        }
    }

    pub fn text(&self) -> String {
        match self {
            Self::Unknown => "unknown".to_owned(),
            Self::Never => "never".to_owned(),
            Self::One(text) | Self::Several(text) => text.clone(),
        }
    }

    /// The text as a part of another type.
    pub fn part(&self) -> String {
        match self {
            Self::Several(text) => format!("({text})"),
            other => other.text(),
        }
    }
}

/// A JSON value as a type that has only this value.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let members = fields.iter().map(|(name, value)| format!(" {}: {};", key(name), literal(value)));
            format!("{{{} }}", members.collect::<String>())
        }
    }
}

/// A member's name, quoted if it is not an identifier of ASCII letters.
pub(crate) fn key(name: &str) -> String {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    let is_identifier = name.bytes().all(is_part) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if is_identifier { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    // Line separators end a line in older parsers.
    Value::from(text).to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// The description of a schema, its default and whether it is deprecated.
pub(crate) fn doc_comment(schema: &Value, depth: usize) -> String {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut lines: Vec<String> = description.lines().map(str::to_owned).collect();
    lines.extend(schema.get("default").map(|default| format!("@default {default}")));
    if schema.get("deprecated") == Some(&Value::Bool(true)) {
        lines.push("@deprecated".to_owned());
    }
    text(lines, depth)
}

/// A comment of these lines; empty without one.
pub(crate) fn text(lines: Vec<String>, depth: usize) -> String {
    let is_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let cleaned = lines.into_iter().map(|line| line.replace(is_break, " ").replace("*/", "*\\/"));
    let lines: Vec<String> = cleaned.map(|line| line.trim_end().to_owned()).collect();
    let margin = "  ".repeat(depth);
    match lines.as_slice() {
        [] => String::new(),
        [one] => format!("{margin}/** {} */\n", one.trim_start()),
        several => {
            let inner = several.iter().map(|line| format!("{margin} * {line}").trim_end().to_owned() + "\n");
            format!("{margin}/**\n{}{margin} */\n", inner.collect::<String>())
        }
    }
}
