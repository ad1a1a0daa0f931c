//! From a message to the request that it asks for: the skill that it names, and the input.

use rcrt_a2a_types::{A2aError, ErrorKind, Message, PartContent, Role};
use rcrt_breadcrumb::{NewBreadcrumb, ToolRequest, Visibility};
use serde_json::{Map, Value, json};

use crate::card::MODES;
use crate::params::{Send, present};
use crate::settings::CardSettings;

/// Where a message can name its skill.
const NAMES: [&str; 3] = ["skill", "skillId", "skill_id"];
/// The field of a request with the message that it was made from.
pub(crate) const MESSAGE_FIELD: &str = "a2a_message";
/// The most characters of a context id: it is the request's `session`.
const MAX_CONTEXT: usize = 150;

/// Checks a message apart from its skill and its input.
pub(crate) fn check(send: &Send) -> Result<(), A2aError> {
    let message = &send.message;
    if message.message_id.is_empty() || message.message_id.chars().count() > 200 {
        return Err(A2aError::invalid("message.messageId", "must have 1 to 200 characters"));
    }
    if message.role != Role::User {
        return Err(A2aError::invalid("message.role", "must be ROLE_USER"));
    }
    if message.parts.is_empty() {
        return Err(A2aError::invalid("message.parts", "must have at least one part"));
    }
    if let Some(at) = message.parts.iter().position(|part| part.content().is_none()) {
        return Err(A2aError::invalid(
            &format!("message.parts[{at}]"),
            "must have exactly one of text, raw, url and data",
        ));
    }
    if present(message.context_id.as_ref()).is_some_and(|id| id.chars().count() > MAX_CONTEXT) {
        return Err(A2aError::invalid("message.contextId", format!("must have at most {MAX_CONTEXT} characters")));
    }
    let accepted = send.configuration.as_ref().and_then(|configuration| configuration.accepted_output_modes.as_ref());
    if accepted.is_some_and(|modes| !modes.is_empty() && !modes.iter().any(|mode| is_produced(mode))) {
        let message = format!("acceptedOutputModes has none of {}", MODES.join(", "));
        return Err(A2aError::new(ErrorKind::ContentTypeNotSupported, message));
    }
    Ok(())
}

fn is_produced(mode: &str) -> bool {
    let essence = mode.split(';').next().unwrap_or_default().trim();
    MODES.contains(&essence) || matches!(essence, "*/*" | "*" | "text/*" | "application/*" | "text" | "json")
}

/// The skill that the message names, or the tenant's default.
pub(crate) fn chosen<'s>(send: &Send, settings: &'s CardSettings) -> Result<&'s str, A2aError> {
    let in_message = NAMES.iter().find_map(|name| send.message.metadata_text(name));
    let in_request = || NAMES.iter().find_map(|name| send.metadata.as_ref()?.get(*name)?.as_str());
    let named = in_message.or_else(in_request).or_else(|| skill_and_input(&send.message).map(|(skill, _)| skill));
    let skill = match named {
        Some(id) => settings.skill(id),
        None => settings.default_skill(),
    };
    skill.map(|skill| skill.tool.as_str()).ok_or_else(|| {
        let why = match named {
            Some(id) => format!("{:?} is not a skill of this agent", id.chars().take(100).collect::<String>()),
            None => "no skill is named".to_owned(),
        };
        let ids: Vec<&str> = settings.skills.iter().map(|skill| skill.tool.as_str()).take(50).collect();
        let skills = if ids.is_empty() { "it has none".to_owned() } else { ids.join(", ") };
        A2aError::invalid("message.metadata.skill", format!("{why}; the skills are: {skills}"))
    })
}

/// The one data part of the form `{"skill": …, "input": …}`, for senders that cannot set metadata.
fn skill_and_input(message: &Message) -> Option<(&str, Option<&Value>)> {
    let fields = data_parts(message).next()?.as_object()?;
    if fields.keys().any(|key| key != "skill" && key != "input") {
        return None;
    }
    Some((fields.get("skill")?.as_str()?, fields.get("input")))
}

fn data_parts(message: &Message) -> impl Iterator<Item = &Value> {
    message.parts.iter().filter_map(|part| match part.content() {
        Some(PartContent::Data(data)) => Some(data),
        _ => None,
    })
}

/// The tool's input. `parameters` is the schema of the tool's input, if it is known.
pub(crate) fn input(message: &Message, parameters: Option<&Value>) -> Result<Value, A2aError> {
    let is_file = |part| matches!(part, Some(PartContent::Raw(_) | PartContent::Url(_)));
    if message.parts.iter().any(|part| is_file(part.content())) {
        let why = "files are not accepted: the parts must be text, or data with the tool's input";
        return Err(A2aError::new(ErrorKind::ContentTypeNotSupported, why));
    }
    if let Some((_, input)) = skill_and_input(message) {
        return Ok(input.cloned().unwrap_or_else(|| json!({})));
    }
    let mut data = data_parts(message);
    match (data.next(), data.next()) {
        (Some(input), None) => return Ok(input.clone()),
        (Some(_), Some(_)) => {
            return Err(A2aError::invalid("message.parts", "must have at most one data part, the tool's input"));
        }
        (None, _) => {}
    }
    let texts: Vec<&str> = message.parts.iter().filter_map(|part| part.text.as_deref()).collect();
    let text = texts.join("\n");
    if let Ok(input @ Value::Object(_)) = serde_json::from_str(&text) {
        return Ok(input);
    }
    match parameters.and_then(field_of_text) {
        Some(field) => Ok(Value::Object(Map::from_iter([(field.to_owned(), text.into())]))),
        None => Err(A2aError::invalid(
            "message.parts",
            "must have a data part with the tool's input, because the tool takes more than one text",
        )),
    }
}

/// The field that a plain text is: the only required one, or the only one, if it is a string.
fn field_of_text(parameters: &Value) -> Option<&str> {
    let properties = parameters.get("properties")?.as_object()?;
    let required = parameters.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let name = match (required, properties.len()) {
        ([only], _) => only.as_str()?,
        ([], 1) => properties.keys().next()?.as_str(),
        _ => return None,
    };
    (properties.get(name)?.get("type")? == "string").then_some(name)
}

/// The request. It is private, as the task is.
pub(crate) fn request(tool: &str, input: Value, message: &Message, context_id: &str) -> NewBreadcrumb {
    let mut record = ToolRequest::record(tool, input, None, None);
    record.context.insert("session".into(), context_id.into());
    record.context.insert(MESSAGE_FIELD.into(), json!(message));
    record.visibility = Visibility::Private;
    record
}
