//! `tool.template.v1`: a tool to start from, with placeholders such as `{{name}}` that a name and a
//! description fill.
//!
//! The template's context: `{name, description, placeholders: [{name, description, default?}],
//! record, code: {language, source}}`, where `record` is the body of a `tool.code.v1` without its
//! code.

use std::collections::BTreeMap;

use rcrt_breadcrumb::Violations;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::seed::context_as;

/// The schema name of a template's record.
pub const TOOL_TEMPLATE: &str = "tool.template.v1";

/// The description of a tool whose author has not written one.
pub const DESCRIPTION: &str = "Describe here what this tool does.";

/// A value that a template needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placeholder {
    /// The value replaces `{{name}}`.
    pub name: String,
    pub description: String,
    /// Used if the caller passes no value. Without a default, the value is required.
    pub default: Option<String>,
}

/// A template, read from its record's context.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    pub name: String,
    pub description: String,
    pub placeholders: Vec<Placeholder>,
    /// The body of the tool's record, without `context.code`.
    record: Map<String, Value>,
    code: TemplateCode,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateCode {
    language: String,
    source: String,
}

/// A new tool as two files: `<name>.json` and, beside it, `<name>.ts` or `<name>.js`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTool {
    /// The record as JSON text, without the source; [`crate::seed::read`] puts the two together.
    pub json: String,
    pub source: String,
    /// `ts` or `js`.
    pub extension: &'static str,
}

impl Template {
    pub fn from_context(context: &Map<String, Value>) -> Result<Self, Violations> {
        context_as(context)
    }

    /// Fills the placeholders. A value must be one line. In the source it is inside a string or a
    /// line comment.
    pub fn instantiate(&self, given: &BTreeMap<String, String>) -> Result<NewTool, Violations> {
        let values = self.values(given)?;
        let mut record = self.record.clone();
        fill_entries(&mut record, &values);
        let json = serde_json::to_string_pretty(&record)
            .map_err(|error| Violations::one("context.record", error.to_string()))?;
        let extension = if self.code.language == "javascript" { "js" } else { "ts" };
        Ok(NewTool { json: json + "\n", source: fill(&self.code.source, &values, escape_in_source), extension })
    }

    fn values(&self, given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Violations> {
        let mut found = Violations::default();
        let mut values = BTreeMap::new();
        for name in given.keys().filter(|name| self.placeholders.iter().all(|placeholder| placeholder.name != **name)) {
            let known: Vec<&str> = self.placeholders.iter().map(|placeholder| placeholder.name.as_str()).collect();
            found.add(name, format!("is not a placeholder of this template; it has {}", known.join(", ")));
        }
        for placeholder in &self.placeholders {
            match given.get(&placeholder.name).or(placeholder.default.as_ref()) {
                Some(value) if value.contains(['\n', '\r', '\u{2028}', '\u{2029}', '\0']) => {
                    found.add(&placeholder.name, "must be one line");
                }
                Some(value) => {
                    values.insert(placeholder.name.clone(), value.clone());
                }
                None => found.add(&placeholder.name, format!("is required: {}", placeholder.description)),
            }
        }
        found.into_result()?;
        Ok(values)
    }
}

fn fill_entries(entries: &mut Map<String, Value>, values: &BTreeMap<String, String>) {
    for value in entries.values_mut() {
        fill_value(value, values);
    }
}

fn fill_value(value: &mut Value, values: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => *text = fill(text, values, str::to_owned),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, values)),
        Value::Object(entries) => fill_entries(entries, values),
        _ => {}
    }
}

/// One pass from left to right: placeholders inside values are not filled.
fn fill(text: &str, values: &BTreeMap<String, String>, escape: impl Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        match after.split_once("}}").and_then(|(name, end)| Some((values.get(name)?, end))) {
            Some((value, end)) => {
                filled.push_str(&escape(value));
                rest = end;
            }
            None => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// Safe inside a double-quoted string and inside a line comment.
fn escape_in_source(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted.trim_start_matches('"').strip_suffix('"').map_or_else(String::new, str::to_owned)
}
