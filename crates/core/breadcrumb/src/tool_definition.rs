//! A tool, as its record defines it: `tool.code.v1` (the code is in the record) or the legacy
//! `tool.v1` (a native executor runs it).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    Annotations, Deprecation, Example, Limits, MAX_TIMEOUT_MS, Permissions, Selector, ToolSource, Violation,
    Violations, example, intended_field, nearest_names, read_typed, schema_names,
};

/// A tag that the store sets on versions of a `tool.code.v1` that a curator wrote, and on no
/// others. Such a tool can take the name of another author's `tool.v1`.
pub const CURATORS_TOOL_TAG: &str = "author:curator";

/// The most selectors in a tool's `subscriptions`.
const MAX_SUBSCRIPTIONS: usize = 20;

/// A tool that can be offered, for any executor.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// The author's version string; empty when there is none.
    pub version: String,
    /// RCRT's `category`, which only the catalog in RCRT's form has.
    pub category: Option<String>,
    /// JSON Schema 2020-12 of the input. `true` accepts everything.
    pub input_schema: Value,
    pub output_schema: Value,
    pub permissions: Permissions,
    pub limits: Limits,
    /// Names of the secrets that the tool needs. It receives those that are granted to its record.
    pub required_secrets: Vec<String>,
    pub examples: Vec<Example>,
    pub annotations: Annotations,
    pub deprecated: Option<Deprecation>,
    /// New records that match one of these run the tool.
    pub subscriptions: Vec<Selector>,
    pub ui_schema: Option<Value>,
    pub bootstrap: Option<Bootstrap>,
    pub implementation: Implementation,
    /// What the runtime ignores or limits in the record: unknown fields, and values above a
    /// maximum.
    pub ignored: Violations,
    /// The unknown fields that are probably meant to be known ones. They are ignored too.
    pub misspelled: Violations,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Implementation {
    Code(ToolCode),
    Native(NativeImplementation),
}

impl Implementation {
    pub fn source(&self) -> ToolSource {
        match self {
            Self::Code(_) => ToolSource::Sandbox,
            Self::Native(native) => match native.kind.as_str() {
                "mcp" => {
                    let server = native.settings.get("server").and_then(Value::as_str).unwrap_or("unnamed");
                    ToolSource::Mcp(server.to_owned())
                }
                kind => ToolSource::of_executor(kind),
            },
        }
    }
}

/// The code of a tool, which runs in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCode {
    pub language: Language,
    pub source: String,
    pub isolation: Isolation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Typescript,
    Javascript,
}

/// What one call can see of another call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Nothing. Calls of the same tool version in the same tenant can follow each other in one
    /// process, each with the globals and the module as they are at first.
    #[default]
    Call,
    /// Nothing, and each call has a process of its own, in which it can change builtins.
    Process,
    /// Calls of the same tool version in the same tenant can share globals.
    Tool,
}

/// The settings of a native executor. `type` selects the executor, which defines the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeImplementation {
    /// `http`, `builtin`, …
    pub kind: String,
    /// The whole `implementation` object, including `type`.
    pub settings: Map<String, Value>,
}

/// Runs a tool automatically when a runner loads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {
    #[serde(default)]
    pub enabled: bool,
    #[serde(default)]
    pub mode: BootstrapMode,
    /// Higher runs earlier, as in RCRT. Ties are sorted by name. Default 100.
    #[serde(default = "default_priority")]
    pub priority: i64,
    /// Names of tools that must be bootstrapped before this one. A tool without a bootstrap need
    /// only exist.
    #[serde(default)]
    pub wait_for: Vec<String>,
    /// The input of the call; `{}` by default.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub input: Map<String, Value>,
}

fn default_priority() -> i64 {
    100
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BootstrapMode {
    /// One request for each version of the tool, ever.
    #[default]
    Once,
    /// Again as soon as the last request has its response.
    Continuous,
    Disabled,
}

const CODE_FIELDS: &[&str] = &[
    "name",
    "description",
    "version",
    "category",
    "code",
    "input_schema",
    "output_schema",
    "permissions",
    "limits",
    "required_secrets",
    "examples",
    "annotations",
    "deprecated",
    "subscriptions",
    "ui_schema",
    "isolation",
    "bootstrap",
];

const CODE_PART: &[&str] = &["language", "source"];
const PERMISSIONS: &[&str] = &["net", "tools", "read", "write", "env", "run", "ffi", "hrtime"];
const LIMITS: &[&str] = &["timeout_ms", "memory_mb", "cpu_percent", "cpu_ms", "max_attempts"];
const ANNOTATIONS: &[&str] = &["title", "read_only", "destructive", "idempotent", "open_world"];
const DEPRECATED: &[&str] = &["since", "use", "remove_after"];
const SELECTOR: &[&str] = &["any_tags", "all_tags", "schema_name", "context_match"];
const BOOTSTRAP: &[&str] = &["enabled", "mode", "priority", "wait_for", "input"];

impl ToolDefinition {
    /// Reads the definition from a record's schema name and context. `description` and
    /// `semantic_version` are the record's own; they are used if the context has none. Returns
    /// every violation, with its field. An unknown field is not a violation; it is listed in
    /// [`Self::ignored`] or [`Self::misspelled`].
    pub fn read(
        schema_name: &str,
        context: &Map<String, Value>,
        description: Option<&str>,
        semantic_version: Option<&str>,
    ) -> Result<Self, Violations> {
        let (definition, found) = Self::read_partly(schema_name, context, description, semantic_version)?;
        found.into_result().map(|()| definition)
    }

    /// Like [`Self::read`], with what could be read: a field with a violation has its default.
    pub fn read_partly(
        schema_name: &str,
        context: &Map<String, Value>,
        description: Option<&str>,
        semantic_version: Option<&str>,
    ) -> Result<(Self, Violations), Violations> {
        let read = match schema_name {
            schema_names::TOOL_CODE => Self::read_code,
            schema_names::TOOL_V1 => Self::read_legacy,
            other => {
                let known = format!("{} or {}", schema_names::TOOL_CODE, schema_names::TOOL_V1);
                return Err(Violations::one("schema_name", format!("is {other:?}; a tool is a {known}")));
            }
        };
        let (found, ignored, misspelled) = (Violations::default(), Violations::default(), Violations::default());
        let mut fields = Fields { context, found, ignored, misspelled };
        let name = fields.tool_name();
        let description = fields.text("description").or_else(|| description.map(str::to_owned)).unwrap_or_default();
        let version = fields.text("version").or_else(|| semantic_version.map(str::to_owned)).unwrap_or_default();
        let mut definition = read(&mut fields, name, description, version);
        (definition.ignored, definition.misspelled) = (fields.ignored, fields.misspelled);
        Ok((definition, fields.found))
    }

    /// What is ignored in a record of a tool, with its field in the record. Empty for other
    /// records.
    pub fn ignored_in(schema_name: Option<&str>, context: &Map<String, Value>) -> Vec<Violation> {
        let tool = schema_name.filter(|_| schema_names::is_tool(schema_name));
        let Some(Ok((definition, _))) = tool.map(|name| Self::read_partly(name, context, None, None)) else {
            return Vec::new();
        };
        let ignored = definition.ignored.0.into_iter().chain(definition.misspelled.0);
        ignored.map(|found| Violation::new(format!("context.{}", found.field), found.message)).collect()
    }

    fn read_code(fields: &mut Fields<'_>, name: String, description: String, version: String) -> Self {
        let context = fields.context;
        for key in context.keys() {
            fields.ignore_unknown("", key, CODE_FIELDS);
        }
        let code = fields.part_of::<CodePart>("code", CODE_PART);
        if fields.context.get("code").is_none_or(Value::is_null) {
            fields.found.add("code", "is required: {\"language\": \"typescript\" or \"javascript\", \"source\": …}");
        }
        let code = code.unwrap_or_default();
        let limits = fields.limits();
        let subscriptions = fields.subscriptions();
        Self {
            name,
            description,
            version,
            category: fields.context.get("category").and_then(Value::as_str).map(str::to_owned),
            input_schema: fields.value("input_schema").unwrap_or(Value::Bool(true)),
            output_schema: fields.value("output_schema").unwrap_or(Value::Bool(true)),
            permissions: fields.part_of("permissions", PERMISSIONS).unwrap_or_default(),
            limits,
            required_secrets: fields.part("required_secrets").unwrap_or_default(),
            examples: fields.examples("examples", fields.value("examples")),
            annotations: fields.part_of("annotations", ANNOTATIONS).unwrap_or_default(),
            deprecated: fields.part_of("deprecated", DEPRECATED),
            subscriptions,
            ui_schema: fields.value("ui_schema"),
            bootstrap: fields.part_of("bootstrap", BOOTSTRAP),
            implementation: Implementation::Code(ToolCode {
                language: code.language,
                source: code.source,
                isolation: fields.part("isolation").unwrap_or_default(),
            }),
            ignored: Violations::default(),
            misspelled: Violations::default(),
        }
    }

    fn read_legacy(fields: &mut Fields<'_>, name: String, description: String, version: String) -> Self {
        let part: DefinitionPart = fields.part("definition").unwrap_or_default();
        let settings: Map<String, Value> = fields.part("implementation").unwrap_or_default();
        let kind = settings.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if kind.is_empty() {
            fields.found.add("implementation.type", "is required: the kind of executor, such as http");
        }
        let limits = fields.limits();
        Self {
            name,
            description,
            version,
            category: fields.context.get("category").and_then(Value::as_str).map(str::to_owned),
            input_schema: part.input_schema.unwrap_or(Value::Bool(true)),
            output_schema: part.output_schema.unwrap_or(Value::Bool(true)),
            permissions: fields.part_of("permissions", PERMISSIONS).unwrap_or_default(),
            limits,
            required_secrets: fields.part("required_secrets").unwrap_or_default(),
            examples: fields.examples("definition.examples", part.examples),
            annotations: fields.part_of("annotations", ANNOTATIONS).unwrap_or_default(),
            deprecated: fields.part_of("deprecated", DEPRECATED),
            subscriptions: Vec::new(),
            ui_schema: fields.value("ui_schema"),
            bootstrap: None,
            implementation: Implementation::Native(NativeImplementation { kind, settings }),
            ignored: Violations::default(),
            misspelled: Violations::default(),
        }
    }

    /// A `tool.code.v1`, which takes precedence over a `tool.v1` of the same name
    /// (`runner/src/registry/tool_records.rs` has the rule).
    pub fn is_code(&self) -> bool {
        matches!(self.implementation, Implementation::Code(_))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CodePart {
    language: Language,
    source: String,
}

impl Default for CodePart {
    fn default() -> Self {
        Self { language: Language::Typescript, source: String::new() }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DefinitionPart {
    #[serde(rename = "inputSchema")]
    input_schema: Option<Value>,
    #[serde(rename = "outputSchema")]
    output_schema: Option<Value>,
    examples: Option<Value>,
}

/// 1 to 100 letters, digits, `_`, `-` and `.`. The first is a letter or `_`.
pub fn is_tool_name(name: &str) -> bool {
    let first_is_good = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let rest_is_good = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    first_is_good && rest_is_good && name.len() <= 100
}

/// Reads fields one at a time and collects the violations of each.
struct Fields<'c> {
    context: &'c Map<String, Value>,
    found: Violations,
    ignored: Violations,
    misspelled: Violations,
}

impl Fields<'_> {
    fn value(&self, key: &str) -> Option<Value> {
        self.context.get(key).filter(|value| !value.is_null()).cloned()
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            _ => {
                self.found.add(key, "must be a string");
                None
            }
        }
    }

    fn part<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.value(key)?;
        self.read(key, value)
    }

    /// Reads an object without its unknown fields.
    fn part_of<T: DeserializeOwned>(&mut self, key: &str, known: &[&str]) -> Option<T> {
        let value = self.value(key)?;
        let value = self.with_known_fields(key, value, known);
        self.read(key, value)
    }

    fn read<T: DeserializeOwned>(&mut self, field_path: &str, value: Value) -> Option<T> {
        match read_typed(value) {
            Ok(part) => Some(part),
            Err(Violation { field, message }) => {
                let separator = if field.is_empty() || field.starts_with('[') { "" } else { "." };
                self.found.add(format!("{field_path}{separator}{field}"), message);
                None
            }
        }
    }

    fn with_known_fields(&mut self, field_path: &str, mut value: Value, known: &[&str]) -> Value {
        if let Value::Object(entries) = &mut value {
            entries.retain(|key, _| !self.ignore_unknown(field_path, key, known));
        }
        value
    }

    /// Returns true if the field is unknown.
    fn ignore_unknown(&mut self, field_path: &str, key: &str, known: &[&str]) -> bool {
        if known.contains(&key) {
            return false;
        }
        let field = if field_path.is_empty() { key.to_owned() } else { format!("{field_path}.{key}") };
        if let Some(meant) = intended_field(key, known.iter().copied()) {
            self.misspelled.add(field, format!("is not a known field; did you mean {meant}?"));
            return true;
        }
        let message = match (field_path, key, nearest_names(key, known.iter().copied()).first()) {
            ("permissions", "breadcrumbs", _) => {
                "is ignored: a tool reads the records that its caller can read, whatever it lists here".to_owned()
            }
            (_, _, Some(near)) => format!("is not a known field and is ignored; did you mean {near}?"),
            (_, _, None) => "is not a known field and is ignored".to_owned(),
        };
        self.ignored.add(field, message);
        true
    }

    /// RCRT's tools can ask for a day. A longer time is reduced to the maximum.
    fn limits(&mut self) -> Limits {
        let mut limits: Limits = self.part_of("limits", LIMITS).unwrap_or_default();
        if limits.timeout_ms > MAX_TIMEOUT_MS {
            let message = format!("is {}; it is reduced to the maximum, {MAX_TIMEOUT_MS} ms", limits.timeout_ms);
            self.ignored.add("limits.timeout_ms", message);
            limits.timeout_ms = MAX_TIMEOUT_MS;
        }
        if let Err(more) = limits.check() {
            self.found.0.extend(more.0);
        }
        limits
    }

    fn examples(&mut self, field_path: &str, examples: Option<Value>) -> Vec<Example> {
        let Some(mut examples) = examples.filter(|examples| !examples.is_null()) else { return Vec::new() };
        if let Value::Array(items) = &mut examples {
            for (index, item) in items.iter_mut().enumerate() {
                *item = self.with_known_fields(&format!("{field_path}[{index}]"), item.take(), example::FIELDS);
            }
        }
        self.read(field_path, examples).unwrap_or_default()
    }

    fn tool_name(&mut self) -> String {
        let Some(name) = self.text("name") else {
            self.found.add("name", "is required: the name by which requests call the tool");
            return String::new();
        };
        if !is_tool_name(&name) {
            self.found
                .add("name", "must start with a letter or _ and have only letters, digits, _, - and ., at most 100");
        }
        name
    }

    fn subscriptions(&mut self) -> Vec<Selector> {
        // RCRT writes either a list of selectors or {"selectors": [...]}.
        let selectors = match self.value("subscriptions") {
            None => return Vec::new(),
            Some(Value::Object(mut wrapper)) => wrapper.remove("selectors").unwrap_or(Value::Null),
            Some(other) => other,
        };
        let selectors = match selectors {
            Value::Array(items) => {
                let known = items.into_iter().enumerate().map(|(index, item)| self.known_selector(index, item));
                Value::Array(known.collect())
            }
            other => other,
        };
        let Some(selectors) = self.read::<Vec<Selector>>("subscriptions", selectors) else { return Vec::new() };
        if selectors.len() > MAX_SUBSCRIPTIONS {
            let message = format!("has {} selectors; at most {MAX_SUBSCRIPTIONS} are allowed", selectors.len());
            self.found.add("subscriptions", message);
            return Vec::new();
        }
        for (index, selector) in selectors.iter().enumerate() {
            if selector.is_empty() {
                self.found
                    .add(format!("subscriptions[{index}]"), "matches every record; name a tag, a schema or a context");
            }
            if let Err(more) = selector.check() {
                for violation in more.0 {
                    self.found.add(format!("subscriptions[{index}].{}", violation.field), violation.message);
                }
            }
        }
        selectors
    }

    /// RCRT's selectors name one required tag as `tag`.
    fn known_selector(&mut self, index: usize, mut selector: Value) -> Value {
        let field_path = format!("subscriptions[{index}]");
        let Value::Object(entries) = &mut selector else { return selector };
        match entries.remove("tag") {
            None | Some(Value::Null) => {}
            Some(tag @ Value::String(_)) => match entries.get_mut("all_tags") {
                Some(Value::Array(tags)) => tags.push(tag),
                Some(other) if !other.is_null() => {}
                _ => {
                    entries.insert("all_tags".into(), Value::Array(vec![tag]));
                }
            },
            Some(_) => self.found.add(format!("{field_path}.tag"), "must be a string"),
        }
        self.with_known_fields(&field_path, selector, SELECTOR)
    }
}
