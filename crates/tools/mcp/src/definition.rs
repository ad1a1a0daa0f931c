//! A tool as its server defines it, and the `tool.v1` that it becomes.

use std::collections::BTreeMap;

use rcrt_breadcrumb::foreign_text::{line, lines};
use rcrt_breadcrumb::{Annotations, hex};
use rcrt_json_schema::Schema;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::server::{Elicitation, ServerConfig};

/// The longest name of a tool: what models' providers accept.
const MAX_TOOL_NAME: usize = 64;
/// The most characters of a description.
const MAX_DESCRIPTION: usize = 4000;
/// The most characters of what is wrong with a schema.
const MAX_REASON: usize = 500;
/// The most bytes of one definition.
const MAX_BYTES: usize = 256 * 1024;

/// The version of JSON Schema that is spoken here.
const VERSION: &str = "https://json-schema.org/draft/2020-12/schema";

/// The inputs by which a caller answers questions, as for other tools that ask.
pub const ANSWERS: &str = "input_responses";
pub const STATE: &str = "request_state";

/// A tool as the server listed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The server's own name for it.
    pub name: String,
    /// SHA-256, in hex, of the JSON with sorted keys.
    pub hash: String,
    pub raw: Value,
}

impl Definition {
    /// The error is the tool's name and why it cannot be registered. `known`: the tools
    /// as they were listed before, whose schemas are not checked again.
    pub fn read(raw: Value, known: &BTreeMap<String, Self>) -> Result<Self, (String, String)> {
        let name = raw.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let refuse = |why: String| Err((line(&name, 100), why));
        if name.is_empty() || name.len() > 1000 || name.chars().any(char::is_control) {
            return refuse("its name is empty, too long or has control characters".into());
        }
        if !raw.get("inputSchema").is_some_and(Value::is_object) {
            return refuse("it has no inputSchema".into());
        }
        let text = canonical(&raw).to_string();
        if text.len() > MAX_BYTES {
            return refuse(format!("its definition has {} bytes, more than {MAX_BYTES}", text.len()));
        }
        let hash = hex(&Sha256::digest(text.as_bytes()));
        if known.get(&name).is_none_or(|known| known.hash != hash) {
            for field in ["inputSchema", "outputSchema"] {
                let given = raw.get(field).filter(|schema| schema.is_object());
                // Nothing that a schema refers to is fetched, so no call of such a tool could be
                // checked.
                if let Some(Err(why)) = given.map(|given| Schema::compile(&schema(Some(given)))) {
                    return refuse(format!("its {field} cannot be used: {}", line(&why.to_string(), MAX_REASON)));
                }
            }
        }
        Ok(Self { name, hash, raw })
    }

    fn hint(&self, name: &str) -> Option<bool> {
        self.raw.get("annotations")?.get(name)?.as_bool()
    }

    /// Whether the server says that a second call has no further effect. An explicit no counts more
    /// than that the tool only reads.
    pub fn may_be_repeated(&self) -> bool {
        self.hint("idempotentHint").unwrap_or_else(|| self.hint("readOnlyHint") == Some(true))
    }

    /// Whether its callers answer its questions. A tool that has inputs of these names itself
    /// cannot be answered.
    pub fn takes_answers(&self, elicitation: Elicitation) -> bool {
        let own = self.raw.pointer("/inputSchema/properties").and_then(Value::as_object);
        let has_room = own.is_none_or(|own| !own.contains_key(ANSWERS) && !own.contains_key(STATE));
        elicitation == Elicitation::Ask && has_room
    }

    /// The context of its `tool.v1`, under this name.
    pub fn context(&self, name: &str, config: &ServerConfig) -> Map<String, Value> {
        let text = |field: &str| self.raw.get(field).and_then(Value::as_str).unwrap_or_default();
        let description = match lines(text("description").trim(), MAX_DESCRIPTION) {
            empty if empty.is_empty() => format!("The tool {} of the MCP server {}.", self.name, config.name),
            description => description,
        };
        let mut definition = json!({"inputSchema": schema(self.raw.get("inputSchema"))});
        if self.takes_answers(config.elicitation) {
            definition["inputSchema"]["properties"][ANSWERS] = json!({
                "type": "object",
                "description": "Only after a result with inputRequests: by their keys, {\"action\": \"accept\", \
                                \"content\": …} or {\"action\": \"decline\"}. The other input stays the same.",
            });
            definition["inputSchema"]["properties"][STATE] =
                json!({"type": "string", "description": "The requestState of that result."});
        } else if let Some(output) = self.raw.get("outputSchema").filter(|schema| schema.is_object()) {
            // A question is no such output.
            definition["outputSchema"] = schema(Some(output));
        }
        // A repeat must be allowed by the record, and harmless according to the server.
        let max_attempts = if self.may_be_repeated() { config.max_attempts } else { 1 };
        let mut context = json!({
            "name": name,
            "description": description,
            "category": "mcp",
            "definition": definition,
            "implementation": {
                "type": "mcp",
                "server": config.name,
                "tool": self.name,
                "definition_hash": self.hash,
            },
            "limits": {"timeout_ms": config.tool_timeout_ms, "max_attempts": max_attempts},
        });
        context["annotations"] = json!(self.annotations(config.trust_annotations));
        match context {
            Value::Object(context) => context,
            _ => Map::new(),
        }
    }

    /// Without trust only the title is used: the defaults of the hints are the strictest ones. With
    /// trust, a tool that is said to destroy something is not read-only.
    fn annotations(&self, is_trusted: bool) -> Annotations {
        let stated = self.raw.get("annotations").and_then(|hints| hints.get("title")).and_then(Value::as_str);
        let title = stated.or_else(|| self.raw.get("title").and_then(Value::as_str));
        let default = Annotations {
            title: title.map(|title| line(title, 200)).filter(|title| !title.is_empty()),
            ..Annotations::default()
        };
        if !is_trusted {
            return default;
        }
        let destroys = self.hint("destructiveHint") == Some(true);
        Annotations {
            read_only: self.hint("readOnlyHint").unwrap_or(default.read_only) && !destroys,
            destructive: self.hint("destructiveHint").unwrap_or(default.destructive),
            idempotent: self.hint("idempotentHint").unwrap_or(default.idempotent),
            open_world: self.hint("openWorldHint").unwrap_or(default.open_world),
            ..default
        }
    }
}

/// A schema without another version than ours. Many servers declare an older one and use only what
/// both have.
fn schema(schema: Option<&Value>) -> Value {
    let mut schema = schema.cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(fields) = &mut schema
        && fields.get("$schema").is_some_and(|version| version != VERSION)
    {
        fields.shift_remove("$schema");
    }
    schema
}

/// The same JSON with sorted keys: some servers list them in another order each time.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            Value::Object(sorted.into_iter().map(|(key, item)| (key.clone(), canonical(item))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

/// The name of a server's tool here: `{server}__{tool}`, at most 64 characters. A character that
/// names of tools do not have becomes `_`, and the end of a long name becomes a hash of it.
pub fn tool_name(server: &str, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let first = if server.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
    let plain: String = tool.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let name = format!("{first}{server}__{plain}");
    if name.len() <= MAX_TOOL_NAME {
        return name;
    }
    let hash = hex(&Sha256::digest(format!("{server}\0{tool}").as_bytes()));
    format!("{}_{}", &name[..MAX_TOOL_NAME - 9], &hash[..8])
}
