//! Tools of files before and after the test of their examples.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcrt_breadcrumb::{NewBreadcrumb, ToolDefinition};
use rcrt_egress::PrivateHost;
use rcrt_examples::{ExampleReport, ExampleRunner, ExampleStatus, has_failed};
use rcrt_validate::Author;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::tool_validate::{definitions, read as read_file};
use crate::output::{Output, Style};
use crate::tool_file::{ExpectedRecord, LocatedFinding, is_tool};

/// The most console lines that are shown of one example.
const MAX_CONSOLE: usize = 50;

/// A tool and what came of its examples.
#[derive(Debug, Serialize)]
pub struct TestedTool {
    pub name: String,
    /// Its JSON file.
    #[serde(skip)]
    pub path: Option<PathBuf>,
    /// Why its examples did not run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    pub examples: Vec<ExampleReport>,
}

impl TestedTool {
    pub fn has_failed(&self) -> bool {
        !self.errors.is_empty() || has_failed(&self.examples)
    }
}

/// A tool before its test.
#[derive(Clone)]
pub struct CandidateTool {
    pub name: String,
    /// Its JSON file; `None` for a tool of the store.
    pub path: Option<PathBuf>,
    /// The definition, or its errors.
    pub definition: Result<ToolDefinition, Vec<String>>,
}

impl CandidateTool {
    pub async fn test(&self, runner: &ExampleRunner) -> TestedTool {
        let Self { name, path, definition } = self.clone();
        let ended = match definition {
            Ok(definition) => {
                let run = runner.run(Uuid::nil(), &Arc::new(definition), &CancellationToken::new()).await;
                run.map_err(|failure| vec![failure.message])
            }
            Err(errors) => Err(errors),
        };
        match ended {
            Ok(examples) => TestedTool { name, path, errors: Vec::new(), examples },
            Err(errors) => TestedTool { name, path, errors, examples: Vec::new() },
        }
    }
}

/// Whether a target means a file or a folder, and not the name of a tool.
pub fn is_file(path: &Path) -> bool {
    path.exists() || path.extension().is_some_and(|end| ["json", "ts", "js"].iter().any(|known| end == *known))
}

/// The tools of a file or a folder, as a runner that allows these private hosts reads them, without
/// the errors of the `ignored` rules.
pub fn candidates(path: &Path, allowed: &[PrivateHost], ignored: &[&str]) -> anyhow::Result<Vec<CandidateTool>> {
    let expected = if path.is_dir() { ExpectedRecord::Any(Author::User) } else { ExpectedRecord::Tool(Author::User) };
    let found = definitions(path)?.into_iter().map(|path| candidate(path, expected, allowed, ignored));
    found.filter_map(Result::transpose).collect()
}

/// The tool of a JSON file; `None` if the file is a valid record of another kind.
pub fn candidate(
    path: PathBuf,
    expected: ExpectedRecord,
    allowed: &[PrivateHost],
    ignored: &[&str],
) -> anyhow::Result<Option<CandidateTool>> {
    let file = read_file(&path, expected, allowed)?;
    let is_other = file.record.as_ref().is_some_and(|record| !is_tool(record));
    if is_other && file.errors.is_empty() {
        return Ok(None);
    }
    let errors = file.errors.iter().filter(|error| error.rule.is_none_or(|rule| !ignored.contains(&rule)));
    let errors: Vec<String> = errors.map(LocatedFinding::to_string).collect();
    let definition = file.record.as_ref().filter(|_| errors.is_empty()).and_then(definition).ok_or(errors);
    Ok(Some(CandidateTool { name: file.name, path: Some(path), definition }))
}

fn definition(record: &NewBreadcrumb) -> Option<ToolDefinition> {
    rcrt_validate::seed::definition(record)?.ok()
}

/// The errors of a tool and the examples that are to be shown, with their details.
pub fn lines(output: Output, tool: &TestedTool, is_shown: impl Fn(&ExampleReport) -> bool) -> Vec<String> {
    let mut lines: Vec<String> =
        tool.errors.iter().map(|error| format!("  {} {error}", output.paint(Style::Bad, "error:"))).collect();
    for example in tool.examples.iter().filter(|example| is_shown(example)) {
        let (style, word) = match example.status {
            ExampleStatus::Passed => (Style::Good, "passed"),
            ExampleStatus::Failed => (Style::Bad, "failed"),
            ExampleStatus::NotRun => (Style::Warning, "not run"),
        };
        let word = output.paint(style, word);
        lines.push(format!("  {word} {} ({} ms)", example.description, example.duration_ms));
        lines.extend(details(example).into_iter().map(|detail| format!("    {detail}")));
    }
    lines
}

/// Why an example did not pass, and what it printed.
pub fn details(example: &ExampleReport) -> Vec<String> {
    if example.status == ExampleStatus::Passed {
        return Vec::new();
    }
    let console = example.console.iter().take(MAX_CONSOLE).map(|line| format!("console: {}", line.message));
    let others = example.console.len().saturating_sub(MAX_CONSOLE);
    let others = (others > 0).then(|| format!("console: {others} more lines"));
    failures(example).chain(console).chain(others).collect()
}

/// Why an example did not pass.
pub fn failures(example: &ExampleReport) -> impl Iterator<Item = String> {
    let shown =
        |value: &Option<serde_json::Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let differences = example.differences.iter().map(move |one| {
        format!("{} {}: expected {}, got {}", one.path, one.message, shown(&one.expected), shown(&one.actual))
    });
    example.reason.iter().cloned().chain(differences)
}
