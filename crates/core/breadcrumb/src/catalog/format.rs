//! The catalog in the formats of model APIs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::{Catalog, Registration};
use crate::hex;
use crate::names::names;

/// The format of a list of tools.
///
/// - `rcrt`: `{"tools": [registration…], "waiting": [{name, source, tool_id,
///   missing_requirements}…]}`.
/// - `openai`, for the Chat Completions API: `[{"type": "function", "function": {name, description,
///   parameters}}…]`.
/// - `openai-responses`, for the Responses API: `[{"type": "function", name, description,
///   parameters, "strict": false}…]`.
/// - `anthropic`: `[{name, description, input_schema}…]`.
/// - `mcp`: the result of `tools/list`, `{"tools": [{name, title?, description, inputSchema,
///   annotations}…]}`.
///
/// Only `rcrt` is complete. The other formats restrict names and require an object schema:
/// - a name that they refuse is replaced by another ([`ToolFormat::name`]), which can be called
///   too;
/// - a schema that does not require an object is narrowed to objects, and a tool whose input is
///   never an object (its `type` is `string`, say) is left out;
/// - OpenAI and Anthropic refuse `oneOf`, `anyOf`, `allOf`, `not`, `enum` and `const` at the top of
///   a schema, so these are left out there; the runner still checks the input against the whole
///   schema;
/// - for OpenAI, a description is cut after 1024 characters. `strict` is false, because OpenAI's
///   strict mode accepts only a part of JSON Schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolFormat {
    #[default]
    Rcrt,
    OpenAi,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Anthropic,
    Mcp,
}

/// The longest name that OpenAI and Anthropic accept.
const MAX_NAME: usize = 64;
/// The longest description that OpenAI accepts, in characters.
const MAX_OPENAI_DESCRIPTION: usize = 1024;

impl ToolFormat {
    /// The names of all formats, as the end of a sentence.
    pub const NAMES: &str = "rcrt, openai, openai-responses, anthropic or mcp";

    /// The tool's name in this format. OpenAI and Anthropic accept 1 to 64 letters, digits, `_` and
    /// `-`. Any other name becomes its first 55 characters, with `_` for each refused one, then `_`
    /// and the first 8 hexadecimal digits of the name's SHA-256: `weather.now` becomes
    /// `weather_now_` and 8 digits. The new name depends only on the name, and `weather_now`
    /// remains another tool's.
    pub fn name(self, tool: &str) -> String {
        let is_taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        match self {
            Self::OpenAi | Self::OpenAiResponses | Self::Anthropic
                if tool.len() > MAX_NAME || !tool.chars().all(is_taken) =>
            {
                let start: String = tool.chars().take(55).map(|c| if is_taken(c) { c } else { '_' }).collect();
                let mut digits = hex(&Sha256::digest(tool.as_bytes()));
                digits.truncate(8);
                format!("{start}_{digits}")
            }
            _ => tool.to_owned(),
        }
    }
}

names!(ToolFormat, "format", {
    Rcrt => "rcrt",
    OpenAi => "openai",
    OpenAiResponses => "openai-responses",
    Anthropic => "anthropic",
    Mcp => "mcp",
});

impl Registration {
    /// The tool in this format; `None` if the format cannot describe its input.
    pub fn in_format(&self, format: ToolFormat) -> Option<Value> {
        let name = format.name(&self.name);
        Some(match format {
            ToolFormat::Rcrt => json!(self),
            ToolFormat::OpenAi => json!({
                "type": "function",
                "function": {
                    "name": name,
                    "description": shortened(&self.described()),
                    "parameters": flat(object_schema(&self.parameters)?),
                },
            }),
            ToolFormat::OpenAiResponses => json!({
                "type": "function",
                "name": name,
                "description": shortened(&self.described()),
                "parameters": flat(object_schema(&self.parameters)?),
                "strict": false,
            }),
            ToolFormat::Anthropic => json!({
                "name": name,
                "description": self.described(),
                "input_schema": flat(object_schema(&self.parameters)?),
            }),
            ToolFormat::Mcp => {
                let mut tool = Map::new();
                tool.insert("name".into(), name.into());
                if let Some(title) = &self.annotations.title {
                    tool.insert("title".into(), title.as_str().into());
                }
                tool.insert("description".into(), self.described().into());
                tool.insert("inputSchema".into(), Value::Object(object_schema(&self.parameters)?));
                tool.insert("annotations".into(), self.hints());
                Value::Object(tool)
            }
        })
    }

    /// The description for a model, which chooses tools by it.
    fn described(&self) -> String {
        match &self.deprecated {
            Some(deprecation) => deprecation.described(&self.description),
            None => self.description.clone(),
        }
    }

    fn hints(&self) -> Value {
        let annotations = &self.annotations;
        json!({
            "readOnlyHint": annotations.read_only,
            "destructiveHint": annotations.destructive,
            "idempotentHint": annotations.idempotent,
            "openWorldHint": annotations.open_world,
        })
    }
}

pub(super) fn catalog(catalog: &Catalog, format: ToolFormat) -> Value {
    let tools = || catalog.tools.iter().filter_map(|tool| tool.in_format(format)).collect::<Vec<Value>>();
    match format {
        ToolFormat::Rcrt => json!(catalog),
        ToolFormat::OpenAi | ToolFormat::OpenAiResponses | ToolFormat::Anthropic => Value::Array(tools()),
        ToolFormat::Mcp => json!({"tools": tools()}),
    }
}

/// The schema narrowed to objects; `None` if it accepts none.
fn object_schema(schema: &Value) -> Option<Map<String, Value>> {
    let mut schema = match schema {
        Value::Object(schema) => schema.clone(),
        Value::Bool(true) => Map::new(),
        _ => return None,
    };
    let admits_objects = match schema.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    };
    if !admits_objects {
        return None;
    }
    schema.insert("type".into(), "object".into());
    if !schema.contains_key("properties") {
        schema.insert("properties".into(), json!({}));
    }
    Some(schema)
}

fn flat(mut schema: Map<String, Value>) -> Value {
    for refused in ["oneOf", "anyOf", "allOf", "not", "enum", "const"] {
        schema.remove(refused);
    }
    Value::Object(schema)
}

fn shortened(description: &str) -> String {
    if description.chars().count() <= MAX_OPENAI_DESCRIPTION {
        return description.to_owned();
    }
    let mut short: String = description.chars().take(MAX_OPENAI_DESCRIPTION - 1).collect();
    short.push('…');
    short
}
