//! `tool.request.v1`: a request to call a tool.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    Breadcrumb, CREATE_TOOL, NewBreadcrumb, RequestKind, TriggerEvent, VersionPin, Violations, intended_field,
    schema_names::{TOOL_CREATE_REQUEST, TOOL_REQUEST},
    tool_creation,
};

/// A request as a runner reads it from its record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolRequest {
    /// The id of the request's record.
    pub id: Uuid,
    pub kind: RequestKind,
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
    pub trigger_event: Option<TriggerEvent>,
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
    /// The version that must run (`version` or `definition_hash`).
    pub pin: Option<VersionPin>,
    /// Whether the call streams its console lines and adds a timeline to its response (`debug`).
    pub debug: bool,
}

/// The longest `deadline_ms`: one day.
pub const MAX_DEADLINE_MS: u64 = 24 * 60 * 60 * 1000;
/// The most characters of `session`.
const MAX_SESSION: usize = 150;
/// The bounds of `max_result_chars`.
pub const RESULT_CHARS: std::ops::RangeInclusive<u64> = 1_000..=4_000_000;

/// The fields of a request that its author writes.
const FIELDS: [&str; 11] = [
    "tool",
    "input",
    "requestId",
    "session",
    "model",
    "max_result_chars",
    "deadline_ms",
    "traceparent",
    "version",
    "definition_hash",
    "debug",
];
/// The fields that the runtime writes into requests of its own.
const RUNTIME_FIELDS: [&str; 4] = ["trigger_event", "schedule", "bootstrap", "awaited"];

/// Names that stand for a field of a request only where that field is missing.
const IN_PLACE_OF: [(&str, &[&str]); 3] =
    [("tool", &["tool_name", "toolName", "name"]), ("input", &["body", "data", "message"]), ("requestId", &["id"])];

/// The field of a request that this key probably means.
fn intended(key: &str, context: &Map<String, Value>) -> Option<&'static str> {
    let missing = IN_PLACE_OF.iter().find(|(field, names)| names.contains(&key) && !context.contains_key(*field));
    missing.map(|(field, _)| *field).or_else(|| intended_field(key, FIELDS))
}

impl ToolRequest {
    /// Checks a request's context. It can have other fields.
    pub fn check(context: &Map<String, Value>) -> Result<(), Violations> {
        let mut found = Violations::default();
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
        for (key, most) in [("session", MAX_SESSION), ("model", 200), ("traceparent", 200)] {
            match context.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => found.text(format_args!("context.{key}"), text, most),
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
        if !matches!(context.get("debug"), None | Some(Value::Null | Value::Bool(_))) {
            found.add("context.debug", "must be true or false");
        }
        VersionPin::check(context, &mut found);
        found.into_result()
    }

    /// Whether a request's context asks for the debug mode.
    pub fn is_debugged(context: &Map<String, Value>) -> bool {
        context.get("debug").and_then(Value::as_bool).unwrap_or_default()
    }

    /// Whether another call waits for this one.
    pub fn is_awaited(context: &Map<String, Value>) -> bool {
        context.get("awaited").and_then(Value::as_bool).unwrap_or_default()
    }

    /// Refuses a new request with a field that is probably a misspelled one: the tool would run
    /// without its input, or the author would wait for another id. Refuses a record of another
    /// schema that is probably meant as a request: it would never be answered.
    pub fn check_spelling(record: &NewBreadcrumb) -> Result<(), Violations> {
        let mut found = Violations::default();
        if record.schema_name.as_deref() == Some(TOOL_REQUEST) {
            let other = |key: &&String| !FIELDS.contains(&key.as_str()) && !RUNTIME_FIELDS.contains(&key.as_str());
            for key in record.context.keys().filter(other) {
                if let Some(meant) = intended(key, &record.context) {
                    found.add(format!("context.{key}"), format!("is not a field of a request; did you mean {meant}?"));
                } else if key == "workspace" {
                    found.add(
                        "context.workspace",
                        "is not a field of a request; add the tag workspace:<name> to the record",
                    );
                } else if matches!(key.as_str(), "idempotency_key" | "idempotencyKey") {
                    found.add(
                        format!("context.{key}"),
                        "is not a field of a request; send it as the header Idempotency-Key",
                    );
                }
            }
        } else if Self::is_meant_by(record) {
            found.add("schema_name", format!("must be {TOOL_REQUEST} in a request; no tool is called otherwise"));
        } else if Self::is_creation_meant_by(record) {
            found.add(
                "schema_name",
                format!("must be {TOOL_CREATE_REQUEST} in a request to create a tool; no tool is created otherwise"),
            );
        }
        found.into_result()
    }

    /// Copies `session_id` to `session` in a request without one: clients of the original RCRT use
    /// that name. A value that cannot be a session is left alone.
    pub fn adopt_session_id(record: &mut NewBreadcrumb) {
        let Some(Value::String(session)) = record.context.get("session_id") else { return };
        let mut found = Violations::default();
        found.text("session_id", session, MAX_SESSION);
        let has_session = record.context.get("session").is_some_and(|session| !session.is_null());
        if record.schema_name.as_deref() == Some(TOOL_REQUEST) && !has_session && found.is_empty() {
            let session = session.clone().into();
            record.context.insert("session".into(), session);
        }
    }

    /// Whether a record of another schema is probably meant as a request to create a tool.
    fn is_creation_meant_by(record: &NewBreadcrumb) -> bool {
        let name = record.schema_name.as_deref().unwrap_or_default();
        let describes_a_tool = record.context.get("tool_spec").is_some_and(Value::is_object);
        let is_similar = name.starts_with("tool.create") || intended_field(name, [TOOL_CREATE_REQUEST]).is_some();
        name != TOOL_CREATE_REQUEST && describes_a_tool && (is_similar || name.is_empty())
    }

    /// Whether a record of another schema is probably meant as a request.
    fn is_meant_by(record: &NewBreadcrumb) -> bool {
        let names_a_tool = record.context.get("tool").is_some_and(Value::is_string);
        names_a_tool
            && match &record.schema_name {
                Some(name) => intended_field(name, [TOOL_REQUEST]).is_some(),
                None => record.context.contains_key("input") || record.tags.iter().any(|tag| tag == "tool:request"),
            }
    }

    /// Checks the context of a request of this kind.
    pub fn check_kind(kind: RequestKind, context: &Map<String, Value>) -> Result<(), Violations> {
        match kind {
            RequestKind::Call => Self::check(context),
            RequestKind::Creation => tool_creation::check(context),
        }
    }

    /// The tool that a request of this kind calls.
    pub fn tool_of(kind: RequestKind, context: &Map<String, Value>) -> &str {
        match kind {
            RequestKind::Call => context.get("tool").and_then(Value::as_str).unwrap_or_default(),
            RequestKind::Creation => CREATE_TOOL,
        }
    }

    /// The caller's own id for a request of this kind.
    pub fn own_id(kind: RequestKind, context: &Map<String, Value>) -> Option<&str> {
        let field = match kind {
            RequestKind::Call => "requestId",
            RequestKind::Creation => "request_id",
        };
        context.get(field).and_then(Value::as_str)
    }

    /// The input of the call that a request asks for: `{}` if it names none.
    pub fn input_of(record: &Breadcrumb) -> Value {
        match RequestKind::of(record.schema_name.as_deref()) {
            Some(RequestKind::Creation) => tool_creation::input(record),
            _ => record.context.get("input").cloned().unwrap_or_else(|| Value::Object(Map::new())),
        }
    }

    pub fn from_breadcrumb(record: &Breadcrumb) -> Result<Self, Violations> {
        let kind = RequestKind::of(record.schema_name.as_deref()).unwrap_or_default();
        Self::check_kind(kind, &record.context)?;
        let text = |key: &str| record.context.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            id: record.id,
            kind,
            request_id: Self::own_id(kind, &record.context).map_or_else(|| record.id.to_string(), str::to_owned),
            tool: Self::tool_of(kind, &record.context).to_owned(),
            input: Self::input_of(record),
            workspace: record.workspace().map(str::to_owned),
            agent_id: record.created_by,
            trigger_event: record.context.get("trigger_event").and_then(|event| TriggerEvent::new(event).ok()),
            session: text("session"),
            model: text("model"),
            max_result_chars: record.context.get("max_result_chars").and_then(Value::as_u64),
            deadline_ms: record.context.get("deadline_ms").and_then(Value::as_u64),
            traceparent: text("traceparent"),
            pin: VersionPin::of(kind, &record.context),
            debug: kind == RequestKind::Call && Self::is_debugged(&record.context),
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
