//! Turns an http tool into a `tool.code.v1` that sends the same requests and returns the same
//! outputs.

use rcrt_breadcrumb::{Implementation, ToolDefinition, Violations, schema_names};
use serde_json::{Map, Value, json};

use super::generated_code::typescript;
use super::settings::{Auth, Settings};
use super::template::{Piece, Template};

/// The types of a value that can be part of a URL.
const IN_URL: [&str; 4] = ["string", "number", "integer", "boolean"];

/// A tool as code.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The context of a `tool.code.v1`, without `code`.
    pub context: Map<String, Value>,
    /// TypeScript.
    pub source: String,
}

/// Converts the context of a `tool.v1` whose implementation is one HTTP exchange. The error names
/// each field that code cannot have, or cannot do in the same way.
pub fn convert(context: &Map<String, Value>, description: Option<&str>) -> Result<Conversion, Violations> {
    let legacy = ToolDefinition::read(schema_names::TOOL_V1, context, description, None)?;
    let settings = settings(&legacy)?;
    let mut found = Violations::default();
    check(&legacy, &settings, &mut found);
    let input_schema = input_schema(&legacy, &settings.url, &mut found);
    found.into_result()?;
    let mut code = Map::new();
    code.insert("name".into(), legacy.name.clone().into());
    code.insert("description".into(), legacy.description.clone().into());
    let copied = ["version", "category", "limits", "required_secrets", "annotations", "deprecated", "ui_schema"];
    for field in copied {
        if let Some(value) = context.get(field).filter(|value| !value.is_null()) {
            code.insert(field.into(), value.clone());
        }
    }
    let (host, port) = settings.url.host();
    code.insert("permissions".into(), json!({"net": [format!("{host}:{port}")]}));
    code.insert("input_schema".into(), input_schema);
    code.insert("output_schema".into(), legacy.output_schema.clone());
    if let Some(examples) = context.get("definition").and_then(|definition| definition.get("examples")) {
        code.insert("examples".into(), examples.clone());
    }
    Ok(Conversion { context: code, source: typescript(&legacy.name, &settings) })
}

fn settings(legacy: &ToolDefinition) -> Result<Settings, Violations> {
    let Implementation::Native(native) = &legacy.implementation else {
        return Err(Violations::one("implementation", "is missing"));
    };
    if !super::KINDS.contains(&native.kind.as_str()) {
        let message = format!("is {:?}; only an http tool can be converted", native.kind);
        return Err(Violations::one("implementation.type", message));
    }
    Settings::read(&native.settings, &legacy.required_secrets).map_err(|failure| {
        // The message begins with the field.
        let (field, message) = failure.message.split_once(": ").unwrap_or(("implementation", &failure.message));
        Violations::one(field, message)
    })
}

fn check(legacy: &ToolDefinition, settings: &Settings, found: &mut Violations) {
    if legacy.description.is_empty() {
        found.add("description", "is required in code: say what the tool does");
    }
    if legacy.examples.is_empty() {
        found.add("definition.examples", "is required in code: add one example at least, with its `http`");
    }
    if legacy.limits.max_attempts > 1 {
        let message = "is above 1: the runtime repeats no failed code; remove it, or repeat the request in code";
        found.add("limits.max_attempts", message);
    }
    let mut names: Vec<String> = settings.headers.keys().map(|name| name.to_ascii_lowercase()).collect();
    match &settings.auth {
        Some(Auth::Bearer { .. }) => names.push("authorization".to_owned()),
        Some(Auth::ApiKey { header, .. }) => names.push(header.to_ascii_lowercase()),
        None => {}
    }
    names.sort_unstable();
    if let Some([twice, ..]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("sends the header {twice} twice, which fetch joins to one; remove one of them");
        found.add("implementation.headers", message);
    }
}

/// The tool's schema, which also requires what the URL needs: an http tool refuses another input
/// with `InvalidArguments`, and code cannot.
fn input_schema(legacy: &ToolDefinition, url: &Template, found: &mut Violations) -> Value {
    let mut schema = match &legacy.input_schema {
        Value::Bool(true) => Map::new(),
        Value::Object(schema) => schema.clone(),
        _ => {
            found.add("definition.inputSchema", "accepts no input, so the tool cannot be called");
            return Value::Null;
        }
    };
    if *schema.entry("type").or_insert_with(|| "object".into()) != "object" {
        found.add("definition.inputSchema.type", "must be \"object\", as the input of every http tool is");
    }
    for name in parameters(url) {
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required
            && !required.iter().any(|one| one == name)
        {
            required.push(name.into());
        }
        let Value::Object(properties) = schema.entry("properties").or_insert_with(|| json!({})) else { continue };
        let types = json!(["string", "number", "boolean"]);
        let property = properties
            .entry(name)
            .or_insert_with(|| json!({"type": types.clone(), "description": "A part of the URL."}));
        if !is_in_url(property) {
            narrow(property, "type", types);
        }
        let refused: Vec<&str> = [".", ".."].into_iter().filter(|value| !url_takes(url, name, value)).collect();
        if !refused.is_empty() && has_texts(property) {
            narrow(property, "not", json!({"enum": refused}));
        }
    }
    Value::Object(schema)
}

/// Whether every value that fits the schema can be part of the URL.
fn is_in_url(schema: &Value) -> bool {
    let is_simple = |name: &Value| name.as_str().is_some_and(|name| IN_URL.contains(&name));
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().all(is_simple),
        Some(name) => is_simple(name),
        None => false,
    }
}

/// Adds a condition to a schema.
fn narrow(schema: &mut Value, keyword: &str, condition: Value) {
    match schema {
        Value::Object(fields) if !fields.contains_key(keyword) => drop(fields.insert(keyword.to_owned(), condition)),
        _ => *schema = json!({"allOf": [schema.take(), {keyword: condition}]}),
    }
}

/// Whether texts can fit the schema.
fn has_texts(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == "string"),
        Some(name) => name == "string",
        None => true,
    }
}

/// Whether the parameter can have this value.
fn url_takes(url: &Template, parameter: &str, value: &str) -> bool {
    let given = |name: &str| if name == parameter { value } else { "0" };
    let mut arguments = parameters(url).into_iter().map(|name| (name.to_owned(), given(name).into())).collect();
    url.fill(&mut arguments).is_ok()
}

/// The parameters of the URL, each once, in order.
pub(super) fn parameters(url: &Template) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for piece in url.pieces() {
        if let Piece::Param(name) = piece
            && !names.contains(&name.as_str())
        {
            names.push(name);
        }
    }
    names
}
