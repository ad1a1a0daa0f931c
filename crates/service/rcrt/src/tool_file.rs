//! Reads and validates a record in a JSON file, with a tool's source next to it if there is one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rcrt_breadcrumb::{NewBreadcrumb, schema_names};
use rcrt_egress::PrivateHost;
use rcrt_validate::Author;
use rcrt_validate::seed::Seed;
use rcrt_validate::template::{TOOL_TEMPLATE, Template};
use serde::Serialize;
use serde_json::Value;

/// A finding with its location, in the format of compilers.
#[derive(Debug, Clone, Serialize)]
pub struct LocatedFinding {
    pub file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The field of the definition; empty for the whole definition.
    pub field: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<&'static str>,
}

impl fmt::Display for LocatedFinding {
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
        if let Some(rule) = self.rule {
            write!(f, " [{rule}]")?;
        }
        match self.fix {
            Some(fix) => write!(f, "; fix: {fix}"),
            None => Ok(()),
        }
    }
}

/// A file and its findings.
#[derive(Debug, Default)]
pub struct ToolFile {
    /// The tool's name or the record's title, or the path if neither is known.
    pub name: String,
    /// `None` if the file is not a record.
    pub record: Option<NewBreadcrumb>,
    pub errors: Vec<LocatedFinding>,
    pub warnings: Vec<LocatedFinding>,
}

/// The expected content of a file.
#[derive(Debug, Clone, Copy)]
pub enum ExpectedRecord {
    /// Any record; the tools among them are by this author.
    Any(Author),
    /// A tool by this author.
    Tool(Author),
}

pub fn is_tool(record: &NewBreadcrumb) -> bool {
    schema_names::is_tool(record.schema_name.as_deref())
}

/// The files below a folder that a set reads. Skips names that start with a dot.
pub fn files_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("the folder {} cannot be read", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else if is_read(&name) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns whether a set reads a file with this name.
fn is_read(name: &str) -> bool {
    is_record(name) || [".ts", ".js"].iter().any(|end| name.ends_with(end))
}

/// Returns whether a file with this name or path is a record. The settings of TypeScript, which
/// `rcrt tool new` writes beside tools, are none.
pub fn is_record(name: &str) -> bool {
    let path = Path::new(name);
    path.extension().is_some_and(|extension| extension == "json") && path.file_name() != Some("tsconfig.json".as_ref())
}

impl ToolFile {
    /// Reads and validates `path`, a JSON file in `files`, as a runner with these allowed hosts
    /// does.
    pub fn read(
        path: &str,
        files: &BTreeMap<String, String>,
        expected: ExpectedRecord,
        allowed: &[PrivateHost],
    ) -> Self {
        let mut file = Self { name: path.to_owned(), ..Self::default() };
        let text = files.get(path).map(String::as_str).unwrap_or_default();
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
            file.errors.push(malformed(path, &error));
            return file;
        }
        let (source_path, source) = beside(path, files).unzip();
        match rcrt_validate::seed::read(path, text, source) {
            Ok(seed) => {
                name_of(&seed.record).clone_into(&mut file.name);
                file.validate(path, source_path.as_deref().unwrap_or(path), &seed, expected, allowed);
                file.record = Some(seed.record);
            }
            Err(error) => {
                file.errors.extend(error.violations.0.into_iter().map(|one| at(path, one.field, one.message)));
            }
        }
        file
    }

    fn validate(&mut self, path: &str, source: &str, seed: &Seed, expected: ExpectedRecord, allowed: &[PrivateHost]) {
        if seed.record.schema_name.as_deref() == Some(TOOL_TEMPLATE)
            && let Err(violations) = Template::from_context(&seed.record.context)
        {
            self.errors.extend(violations.0.into_iter().map(|one| at(path, one.field, one.message)));
        }
        let (ExpectedRecord::Any(author) | ExpectedRecord::Tool(author)) = expected;
        match (&seed.tool, expected) {
            (Some(definition), _) => {
                let report = rcrt_validate::tool_allowing(definition, author, allowed);
                self.errors.extend(report.errors.into_iter().map(|finding| placed(path, source, finding)));
                self.warnings.extend(report.warnings.into_iter().map(|finding| placed(path, source, finding)));
            }
            (None, ExpectedRecord::Tool(_)) => {
                let message = "is not the schema name of a tool; expected tool.code.v1 or tool.v1".to_owned();
                self.errors.push(at(path, "schema_name".into(), message));
            }
            (None, ExpectedRecord::Any(_)) => {}
        }
    }
}

/// A tool's name, else the record's title.
pub fn name_of(record: &NewBreadcrumb) -> &str {
    let name = record.context.get("name").and_then(Value::as_str).filter(|_| is_tool(record));
    name.unwrap_or(&record.title)
}

fn malformed(path: &str, error: &serde_json::Error) -> LocatedFinding {
    let text = error.to_string();
    // The finding has the position.
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = text.strip_suffix(&place).unwrap_or(&text);
    LocatedFinding {
        file: path.to_owned(),
        line: Some(error.line() as u32),
        column: Some(error.column() as u32),
        field: String::new(),
        message: format!("is not valid JSON: {reason}"),
        rule: None,
        fix: None,
    }
}

fn at(file: &str, field: String, message: String) -> LocatedFinding {
    LocatedFinding { file: file.to_owned(), line: None, column: None, field, message, rule: None, fix: None }
}

/// A finding with a line is in the source file, any other in the JSON file.
fn placed(path: &str, source: &str, finding: rcrt_validate::Finding) -> LocatedFinding {
    let file = if finding.line.is_some() { source } else { path };
    LocatedFinding {
        file: file.to_owned(),
        line: finding.line,
        column: finding.column,
        field: finding.field,
        message: finding.message,
        rule: Some(finding.rule),
        fix: rcrt_validate::fix(finding.rule),
    }
}

/// Returns the path and text of the source file with the same name and `.ts` or `.js`.
fn beside<'f>(path: &str, files: &'f BTreeMap<String, String>) -> Option<(String, &'f str)> {
    let stem = path.strip_suffix(".json").unwrap_or(path);
    ["ts", "js"].into_iter().find_map(|extension| {
        let source_path = format!("{stem}.{extension}");
        let source = files.get(&source_path)?;
        Some((source_path, source.as_str()))
    })
}
