//! `tool.request.v1`: a request to call a tool.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{Breadcrumb, NewBreadcrumb, Violations, intended_field, schema_names::TOOL_REQUEST};

/// A request as a runner reads it from its record.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// The id of the request's record.
    pub id: Uuid,
    /// The caller's own id (`requestId`), or the record's id. The response is tagged
    /// `request:<request_id>`.
    pub request_id: String,
    pub tool: String,
    /// `{}` if the caller gave no input.
    pub input: Value,
    /// The record's `workspace:…` tag, including the prefix.
    pub workspace: Option<String>,
    /// The agent that wrote the request.
    pub agent_id: Option<Uuid>,
    /// The event that triggered a subscribed tool. Set by the runner.
    pub trigger_event: Option<Value>,
    /// The conversation of the request (`session`). Large results go to its working memory.
    pub session: Option<String>,
    /// The model that will read the response (`model`). It decides how long a result can be.
    pub model: Option<String>,
    /// The most characters of a result that the caller accepts at once (`max_result_chars`).
    pub max_result_chars: Option<u64>,
    /// The deadline in milliseconds after the request is written (`deadline_ms`). After it the
    /// response is `Timeout`.
    pub deadline_ms: Option<u64>,
    /// The caller's place in a distributed trace (`traceparent`, W3C Trace Context).
    pub traceparent: Option<String>,
}

/// The longest `deadline_ms`: one day.
pub const MAX_DEADLINE_MS: u64 = 24 * 60 * 60 * 1000;
/// The bounds of `max_result_chars`.
pub const RESULT_CHARS: std::ops::RangeInclusive<u64> = 1_000..=4_000_000;

/// The fields of a request that its author writes.
const FIELDS: [&str; 8] =
    ["tool", "input", "requestId", "session", "model", "max_result_chars", "deadline_ms", "traceparent"];
/// The fields that the runtime writes into requests of its own.
const RUNTIME_FIELDS: [&str; 3] = ["trigger_event", "schedule", "bootstrap"];

/// Names that stand for a field of a request only where that field is missing.
const IN_PLACE_OF: [(&str, &[&str]); 3] =
    [("tool", &["tool_name", "toolName", "name"]), ("input", &["body", "data", "message"]), ("requestId", &["id"])];

/// The field of a request that this key probably means.
fn intended(key: &str, context: &Map<String, Value>) -> Option<&'static str> {
    let missing = IN_PLACE_OF.iter().find(|(field, names)| names.contains(&key) && !context.contains_key(*field));
    missing.map(|(field, _)| *field).or_else(|| intended_field(key, FIELDS))
}

impl ToolRequest {
    /// Checks a request's context. It can have other fields, but none that is probably a misspelled
    /// one of these: the tool would run without its input, or the author would wait for another id.
    pub fn check(context: &Map<String, Value>) -> Result<(), Violations> {
        let mut found = Violations::default();
        for key in
            context.keys().filter(|key| !FIELDS.contains(&key.as_str()) && !RUNTIME_FIELDS.contains(&key.as_str()))
        {
            if let Some(meant) = intended(key, context) {
                found.add(format!("context.{key}"), format!("is not a field of a request; did you mean {meant}?"));
            } else if key == "workspace" {
                found.add(
                    "context.workspace",
                    "is not a field of a request; add the tag workspace:<name> to the record",
                );
            }
        }
        match context.get("tool") {
            Some(Value::String(tool)) => found.text("context.tool", tool, 200),
            Some(_) => found.add("context.tool", "must be a string: the name of the tool to call"),
            None => found.add("context.tool", "is required in a tool.request.v1: the name of the tool to call"),
        }
        match context.get("requestId") {
            None | Some(Value::Null) => {}
            // It becomes the tag `request:<requestId>`, and tags have at most 200 characters.
            Some(Value::String(id)) => found.text("context.requestId", id, 180),
            Some(_) => found.add("context.requestId", "must be a string"),
        }
        for (key, most) in [("session", 150), ("model", 200), ("traceparent", 200)] {
            match context.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => found.text(&format!("context.{key}"), text, most),
                Some(_) => found.add(format!("context.{key}"), "must be a string"),
            }
        }
        match context.get("parent") {
            None | Some(Value::Null) => {}
            Some(Value::String(id)) if id.parse::<Uuid>().is_ok() => {}
            Some(_) => found.add("context.parent", "must be the id of a request's record, a UUID"),
        }
        for (key, bounds) in [("deadline_ms", 1..=MAX_DEADLINE_MS), ("max_result_chars", RESULT_CHARS)] {
            match context.get(key) {
                None | Some(Value::Null) => {}
                Some(number) if number.as_u64().is_some_and(|number| bounds.contains(&number)) => {}
                Some(_) => {
                    let (least, most) = bounds.into_inner();
                    found.add(format!("context.{key}"), format!("must be a whole number from {least} to {most}"));
                }
            }
        }
        found.into_result()
    }

    /// Whether a record of another schema is probably meant as a request. It would never be answered.
    pub(crate) fn is_meant_by(record: &NewBreadcrumb) -> bool {
        let names_a_tool = record.context.get("tool").is_some_and(Value::is_string);
        names_a_tool
            && match &record.schema_name {
                Some(name) => intended_field(name, [TOOL_REQUEST]).is_some(),
                None => record.context.contains_key("input") || record.tags.iter().any(|tag| tag == "tool:request"),
            }
    }

    pub fn from_breadcrumb(record: &Breadcrumb) -> Result<Self, Violations> {
        Self::check(&record.context)?;
        let text = |key: &str| record.context.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            id: record.id,
            request_id: text("requestId").unwrap_or_else(|| record.id.to_string()),
            tool: text("tool").unwrap_or_default(),
            input: record.context.get("input").cloned().unwrap_or_else(|| Value::Object(Map::new())),
            workspace: record.workspace().map(str::to_owned),
            agent_id: record.created_by,
            trigger_event: record.context.get("trigger_event").cloned(),
            session: text("session"),
            model: text("model"),
            max_result_chars: record.context.get("max_result_chars").and_then(Value::as_u64),
            deadline_ms: record.context.get("deadline_ms").and_then(Value::as_u64),
            traceparent: text("traceparent"),
        })
    }

    /// The record of a request. `workspace` is a tag of the form `workspace:…`.
    pub fn record(tool: &str, input: Value, request_id: Option<&str>, workspace: Option<&str>) -> NewBreadcrumb {
        let mut context = Map::new();
        context.insert("tool".into(), tool.into());
        context.insert("input".into(), input);
        if let Some(id) = request_id {
            context.insert("requestId".into(), id.into());
        }
        let mut tags = vec!["tool:request".to_owned()];
        tags.extend(workspace.map(str::to_owned));
        NewBreadcrumb {
            title: format!("Call {}", tool.chars().take(200).collect::<String>()),
            context,
            tags,
            schema_name: Some(TOOL_REQUEST.into()),
            ..NewBreadcrumb::default()
        }
    }
}
