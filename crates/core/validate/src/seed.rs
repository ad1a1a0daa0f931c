//! A file of `bootstrap-breadcrumbs/` as a record: one JSON document, with the tool's or template's
//! source in a file of the same name beside it where the document leaves it out.

use std::fmt;

use rcrt_breadcrumb::{NewBreadcrumb, ToolDefinition, Violation, Violations, check_numbers, read_typed, schema_names};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::guide;

/// A file that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Seed {
    /// The path as passed in, for messages.
    pub path: String,
    pub record: NewBreadcrumb,
    /// The definition, when the record is a tool.
    pub tool: Option<ToolDefinition>,
}

/// Why a file is not a valid seed: all violations, with their fields in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedError {
    pub path: String,
    pub violations: Violations,
}

impl fmt::Display for SeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.violations)
    }
}

impl std::error::Error for SeedError {}

/// Reads a document. `source` is the text of the `.ts` (or `.js`) file beside it, if there is one:
/// it becomes `context.code.source`, or for a template `context.code.source` of what it makes.
///
/// A tool's definition is read too, but not validated: see [`crate::tool_as`].
pub fn read(path: &str, json: &str, source: Option<&str>) -> Result<Seed, SeedError> {
    let fail = |violations| SeedError { path: path.to_owned(), violations };
    let mut document: Value = serde_json::from_str(json.trim_start_matches('\u{feff}'))
        .map_err(|error| fail(Violations::one("", format!("is not valid JSON: {error}"))))?;
    check_numbers(json.as_bytes()).map_err(|violation| fail(Violations(vec![violation])))?;
    if !document.is_object() {
        return Err(fail(Violations::one("", "must be a JSON object: the body of POST /breadcrumbs")));
    }
    if let Some(source) = source {
        put_source(&mut document, source).map_err(|violation| fail(Violations(vec![violation])))?;
    }
    let record: NewBreadcrumb = read_typed(document).map_err(|violation| fail(Violations(vec![violation])))?;
    let mut found = Violations::default();
    if record.schema_name.is_none() {
        found.add("schema_name", "is required in a seed: it identifies the kind of the record, also on later runs");
    }
    if let Err(more) = record.check() {
        found.0.extend(more.0);
    }
    if record.schema_name.as_deref() == Some(schema_names::TOOL_GUIDE)
        && let Err(more) = guide::check(&record)
    {
        found.0.extend(more.0);
    }
    let tool = match definition(&record) {
        Some(Ok(tool)) => Some(tool),
        Some(Err(more)) => {
            let in_context = |violation: Violation| {
                if violation.field == "code" && source.is_none() {
                    return Violation::new("context.code", no_source(path));
                }
                Violation::new(format!("context.{}", violation.field), violation.message)
            };
            found.0.extend(more.0.into_iter().map(in_context));
            None
        }
        None => None,
    };
    found.into_result().map_err(fail)?;
    Ok(Seed { path: path.to_owned(), record, tool })
}

/// The problem of a definition without code: most often, its file is missing.
fn no_source(path: &str) -> String {
    let stem = path.strip_suffix(".json").unwrap_or(path);
    format!("is missing, and so is the source file {stem}.ts: write the source there, or to context.code.source")
}

/// A record's context as a type. The violation has its field in the record.
pub(crate) fn context_as<T: DeserializeOwned>(context: &Map<String, Value>) -> Result<T, Violations> {
    read_typed(Value::Object(context.clone())).map_err(|Violation { field, message }| {
        let field = if field.is_empty() { "context".to_owned() } else { format!("context.{field}") };
        Violations::one(field, message)
    })
}

/// The tool that a record defines. `None` if the record is not a tool.
pub fn definition(record: &NewBreadcrumb) -> Option<Result<ToolDefinition, Violations>> {
    let schema_name = record.schema_name.as_deref()?;
    let is_tool = schema_name == schema_names::TOOL_CODE || schema_name == schema_names::TOOL_V1;
    is_tool.then(|| {
        ToolDefinition::read(
            schema_name,
            &record.context,
            record.description.as_deref(),
            record.semantic_version.as_deref(),
        )
    })
}

fn put_source(document: &mut Value, source: &str) -> Result<(), Violation> {
    let code = document
        .get_mut("context")
        .and_then(Value::as_object_mut)
        .map(|context| context.entry("code").or_insert_with(|| Value::Object(Map::new())))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| Violation::new("context.code", "must be an object, so that the source file can be inserted"))?;
    if code.contains_key("source") {
        return Err(Violation::new(
            "context.code.source",
            "is set, but there is also a source file: keep only one of them",
        ));
    }
    code.entry("language").or_insert_with(|| "typescript".into());
    code.insert("source".into(), source.into());
    Ok(())
}
