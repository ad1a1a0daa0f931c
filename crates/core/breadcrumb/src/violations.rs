//! Shared field checks, so that the HTTP server, the CLI and the store refuse the same input with
//! the same text.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The largest record that the store accepts, in bytes of its JSON text, including the context.
pub const MAX_RECORD_BYTES: usize = 4 * 1024 * 1024;

/// The most violations that are reported for one input.
pub const MAX_VIOLATIONS: usize = 100;
/// The most violations that one message names.
const MAX_LISTED: usize = 10;
/// The most characters of a field's name and of a message. Both may quote the input, which may be
/// large.
const MAX_VIOLATION_CHARS: usize = 500;
/// The most characters of one key within a field's name.
const MAX_KEY_CHARS: usize = 100;

/// One invalid field of an input, with what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// The field, as a dotted path from the root of the input (`context.tool`, `tags[3]`). Empty
    /// for the whole input.
    pub field: String,
    /// What is wrong and what is accepted, as a sentence for the caller.
    pub message: String,
}

impl Violation {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: shortened(field.into()), message: shortened(message.into()) }
    }
}

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_VIOLATION_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.field.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.field, self.message) }
    }
}

/// All violations in one input, in the order of the fields. Empty if the input is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Violations(pub Vec<Violation>);

impl Violations {
    /// Past [`MAX_VIOLATIONS`] nothing is added.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < MAX_VIOLATIONS {
            self.0.push(Violation::new(field, message));
        }
    }

    /// Adds those of another check, which can have found the same as this one.
    pub(crate) fn append(&mut self, more: Self) {
        for one in more.0 {
            if self.0.len() < MAX_VIOLATIONS && !self.0.contains(&one) {
                self.0.push(one);
            }
        }
    }

    pub fn one(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self(vec![Violation::new(field, message)])
    }

    /// The first violations as one message, and how many more there are.
    pub fn listed(violations: &[Violation]) -> String {
        let shown: Vec<String> = violations.iter().take(MAX_LISTED).map(ToString::to_string).collect();
        match violations.len().saturating_sub(MAX_LISTED) {
            0 => shown.join("; "),
            more => format!("{}; and {more} more", shown.join("; ")),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `Ok` if there are no violations, else the violations as the error.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Checks a text that must have 1 to `max` characters and no NUL.
    pub(crate) fn text(&mut self, field: impl Display + Copy, value: &str, max: usize) {
        if value.trim().is_empty() {
            self.add(field.to_string(), "must not be empty");
        }
        self.optional_text(field, value, max);
    }

    /// Checks a text that can be empty and must have at most `max` characters and no NUL.
    pub(crate) fn optional_text(&mut self, field: impl Display + Copy, value: &str, max: usize) {
        let characters = value.chars().count();
        if characters > max {
            self.add(field.to_string(), format!("has {characters} characters; at most {max} are allowed"));
        }
        if value.contains('\0') {
            self.add(field.to_string(), "contains a NUL character (U+0000), which cannot be stored");
        }
    }

    /// Checks any JSON value: no NUL in a string or a key, at most 128 levels deep.
    pub(crate) fn json(&mut self, field: impl Display, value: &Value) {
        self.json_at(&FieldPath::Root(&field), value, 0);
    }

    fn json_at(&mut self, path: &FieldPath<'_>, value: &Value, depth: usize) {
        // Each violation stores its path. Very many would use too much memory.
        if self.0.len() >= MAX_VIOLATIONS {
            return;
        }
        if depth > 128 && (value.is_string() || value.is_array() || value.is_object()) {
            self.add(path.to_string(), "is nested deeper than 128 levels");
            return;
        }
        match value {
            Value::String(text) if text.contains('\0') => {
                self.add(path.to_string(), "contains a NUL character (U+0000), which cannot be stored");
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.json_at(&FieldPath::Item(path, index), item, depth + 1);
                }
            }
            Value::Object(entries) => {
                for (key, item) in entries {
                    if key.contains('\0') {
                        self.add(path.to_string(), "has a key with a NUL character (U+0000), which cannot be stored");
                    }
                    self.json_at(&FieldPath::Entry(path, key), item, depth + 1);
                }
            }
            _ => {}
        }
    }
}

/// The path of a value. It is formatted only for a violation: most of the many values are valid.
enum FieldPath<'p> {
    Root(&'p dyn Display),
    Item(&'p FieldPath<'p>, usize),
    Entry(&'p FieldPath<'p>, &'p str),
}

impl Display for FieldPath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root(field) => field.fmt(f),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Entry(parent, key) => write!(f, "{parent}.{key:.MAX_KEY_CHARS$}"),
        }
    }
}

impl Display for Violations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{violation}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}
