//! `tool.create.request.v1` and `tool.create.response.v1`: an agent asks for a tool to be made, and
//! gets what the validators and the tool's examples say. The request is a call of the native tool
//! [`CREATE_TOOL`]; the response has that call's output in its context.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::names::names;
use crate::schema_names::{TOOL_CREATE_REQUEST, TOOL_CREATE_RESPONSE, TOOL_REQUEST, TOOL_RESPONSE};
use crate::{Breadcrumb, Violations};

/// The native tool that makes tools.
pub const CREATE_TOOL: &str = "create_tool";

/// The native tool that validates a tool and runs its examples.
pub const TEST_TOOL: &str = "test_tool";

/// The tag of a response to a creation.
pub(crate) const RESPONSE_TAG: &str = "tool:create:response";

/// The tag of a version of a tool that is a draft: only its author can call it, and for all others
/// the newest version without the tag goes on to serve.
pub const DRAFT_TAG: &str = "tool:draft";

/// Whether these are the tags of a draft.
pub fn is_draft(tags: &[String]) -> bool {
    tags.iter().any(|tag| tag == DRAFT_TAG)
}

/// What publishes the tools that agents without the role curator make in a tenant. What a curator
/// writes is published as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PublishRule {
    /// A tool that is made by [`CREATE_TOOL`] is a draft until all its examples pass. A record that
    /// an agent writes itself is published if it is valid.
    #[default]
    Examples,
    /// Every tool is a draft, however it was written, until a curator publishes it.
    Curator,
    /// Every valid tool is published.
    Anyone,
}

names!(PublishRule, "publish rule", { Examples => "examples", Curator => "curator", Anyone => "anyone" });

/// The kind of a request for a call. It decides the form of the response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestKind {
    /// `tool.request.v1`.
    #[default]
    Call,
    /// `tool.create.request.v1`.
    Creation,
}

impl RequestKind {
    /// `None` if records of this schema name are not requests.
    pub fn of(schema_name: Option<&str>) -> Option<Self> {
        match schema_name {
            Some(TOOL_REQUEST) => Some(Self::Call),
            Some(TOOL_CREATE_REQUEST) => Some(Self::Creation),
            _ => None,
        }
    }

    /// The schema name of the response.
    pub fn response_schema(self) -> &'static str {
        match self {
            Self::Call => TOOL_RESPONSE,
            Self::Creation => TOOL_CREATE_RESPONSE,
        }
    }

    /// Whether records of this schema name are responses to requests.
    pub fn is_response(schema_name: Option<&str>) -> bool {
        matches!(schema_name, Some(TOOL_RESPONSE | TOOL_CREATE_RESPONSE))
    }
}

/// What to do with the tool that is described.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreationMode {
    #[default]
    Create,
    Update,
    /// Only validate and test.
    DryRun,
}

/// The fields of a creation.
const FIELDS: [&str; 5] = ["request_id", "agent_id", "tool_spec", "mode", "if_version"];
/// The fields of a creation that become the input of [`CREATE_TOOL`].
const INPUT_FIELDS: [&str; 3] = ["tool_spec", "mode", "if_version"];

/// Checks the context of a `tool.create.request.v1`. The tool itself is checked by the call, which
/// reports all findings at once.
pub(crate) fn check(context: &Map<String, Value>) -> Result<(), Violations> {
    let mut found = Violations::default();
    for key in context.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
        if let Some(meant) = crate::intended_field(key, FIELDS) {
            found.add(
                format!("context.{key}"),
                format!("is not a field of a {TOOL_CREATE_REQUEST}; did you mean {meant}?"),
            );
        }
    }
    match context.get("request_id") {
        None | Some(Value::Null) => {}
        // It becomes the tag `request:<request_id>`, and tags have at most 200 characters.
        Some(Value::String(id)) => found.text("context.request_id", id, 180),
        Some(_) => found.add("context.request_id", "must be a string"),
    }
    match context.get("agent_id") {
        None | Some(Value::Null) => {}
        Some(Value::String(id)) => found.text("context.agent_id", id, 200),
        Some(_) => found.add("context.agent_id", "must be a string"),
    }
    if !context.get("tool_spec").is_some_and(Value::is_object) {
        found.add("context.tool_spec", "is required: an object, the context of a tool.code.v1");
    }
    match context.get("mode") {
        None | Some(Value::Null) => {}
        Some(mode) if CreationMode::deserialize(mode).is_ok() => {}
        Some(_) => found.add("context.mode", "must be create, update or dry_run"),
    }
    match context.get("if_version") {
        None | Some(Value::Null) => {}
        Some(version) if version.as_i64().is_some_and(|version| version >= 1) => {}
        Some(_) => found.add("context.if_version", "must be a version of the tool's record: a whole number from 1"),
    }
    found.into_result()
}

/// The input of [`CREATE_TOOL`].
pub(crate) fn input(record: &Breadcrumb) -> Value {
    let fields = INPUT_FIELDS.into_iter().filter_map(|field| {
        let value = record.context.get(field).filter(|value| !value.is_null())?;
        Some((field.to_owned(), value.clone()))
    });
    Value::Object(fields.collect())
}
