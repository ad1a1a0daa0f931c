//! A record in a JSON file, a tool's source beside it perhaps; and everything that is wrong with it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use breadcrumb::{NewBreadcrumb, ToolDefinition, schema_names};
use serde::Serialize;
use serde_json::Value;
use validate::Author;

/// A finding with its place, as compilers write it.
#[derive(Debug, Clone, Serialize)]
pub struct Placed {
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The field of the definition; empty for the whole.
    pub field: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}:{}", self.column.unwrap_or(1))?;
        }
        write!(f, ": ")?;
        if !self.field.is_empty() && self.line.is_none() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{}", self.message)?;
        match &self.rule {
            Some(rule) => write!(f, " [{rule}]"),
            None => Ok(()),
        }
    }
}

/// A file, judged.
#[derive(Debug, Default)]
pub struct ToolFile {
    /// The tool's name or the record's title, as far as it can be told.
    pub name: String,
    /// There when the file could be read as a record.
    pub record: Option<NewBreadcrumb>,
    /// There when the record is a tool whose parts have the right shapes.
    pub definition: Option<ToolDefinition>,
    pub errors: Vec<Placed>,
    pub warnings: Vec<Placed>,
}

/// What a file is to be.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// Any record; the tools among them are an operator's, with the rules for those.
    Any,
    /// A tool by this author.
    Tool(Author),
}

pub fn is_tool(record: &NewBreadcrumb) -> bool {
    matches!(record.schema_name.as_deref(), Some(schema_names::TOOL_CODE | schema_names::TOOL_LEGACY))
}

/// Whether a file of this name has a part in a set.
pub fn is_read(name: &str) -> bool {
    is_record(name) || [".ts", ".js"].iter().any(|end| name.ends_with(end))
}

/// Whether a file of this name is a record.
pub fn is_record(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "json")
}

impl ToolFile {
    /// Reads and judges `path`, a JSON file among `files`.
    pub fn read(path: &str, files: &BTreeMap<String, String>, judge: Judge) -> Self {
        let mut file = Self { name: path.to_owned(), ..Self::default() };
        let text = files.get(path).map(String::as_str).unwrap_or_default();
        let mut record = match parse(text) {
            Ok(record) => record,
            Err(error) => {
                file.errors.push(Placed {
                    file: path.to_owned(),
                    line: Some(error.line() as u32),
                    column: Some(error.column() as u32),
                    field: String::new(),
                    message: error.to_string(),
                    rule: None,
                });
                return file;
            }
        };
        let source = beside(path, files, &mut record);
        let name = record.context.get("name").and_then(Value::as_str);
        name.unwrap_or(&record.title).clone_into(&mut file.name);
        if let Err(violations) = record.check() {
            file.errors.extend(violations.0.into_iter().map(|one| at(path, one.field, one.message)));
        }
        let author = match judge {
            Judge::Any if !is_tool(&record) => None,
            Judge::Any => Some(Author::System),
            Judge::Tool(author) => Some(author),
        };
        if let Some(author) = author {
            file.judge_tool(path, source.as_deref().unwrap_or(path), &record, author);
        }
        file.record = Some(record);
        file
    }

    fn judge_tool(&mut self, path: &str, source: &str, record: &NewBreadcrumb, author: Author) {
        let schema = record.schema_name.as_deref().unwrap_or_default();
        let version = record.semantic_version.as_deref();
        match ToolDefinition::read(schema, &record.context, record.description.as_deref(), version) {
            Err(violations) => {
                self.errors.extend(violations.0.into_iter().map(|one| at(path, one.field, one.message)));
            }
            Ok(definition) => {
                let report = validate::tool_as(&definition, author);
                self.errors.extend(report.errors.into_iter().map(|finding| placed(path, source, finding)));
                self.warnings.extend(report.warnings.into_iter().map(|finding| placed(path, source, finding)));
                self.definition = Some(definition);
            }
        }
    }
}

fn parse(text: &str) -> Result<NewBreadcrumb, serde_json::Error> {
    serde_json::from_str(text)
}

fn at(file: &str, field: String, message: String) -> Placed {
    Placed { file: file.to_owned(), line: None, column: None, field, message, rule: None }
}

/// A finding in the code stands in the source's file, any other in the JSON file.
fn placed(path: &str, source: &str, finding: validate::Finding) -> Placed {
    let file = if finding.line.is_some() { source } else { path };
    Placed {
        file: file.to_owned(),
        line: finding.line,
        column: finding.column,
        field: finding.field,
        message: finding.message,
        rule: Some(finding.rule.to_string()),
    }
}

/// Where the JSON has no source, takes it from the file of the same name with `.ts` or `.js`. Gives that file's path.
fn beside(path: &str, files: &BTreeMap<String, String>, record: &mut NewBreadcrumb) -> Option<String> {
    if record.schema_name.as_deref() != Some(schema_names::TOOL_CODE) {
        return None;
    }
    let code = record.context.entry("code").or_insert_with(|| Value::Object(serde_json::Map::new()));
    let code = code.as_object_mut().filter(|code| !code.contains_key("source"))?;
    let stem = path.strip_suffix(".json").unwrap_or(path);
    [("ts", "typescript"), ("js", "javascript")].into_iter().find_map(|(extension, language)| {
        let source_path = format!("{stem}.{extension}");
        let source = files.get(&source_path)?;
        code.entry("language").or_insert_with(|| language.into());
        code.insert("source".into(), source.as_str().into());
        Some(source_path)
    })
}
