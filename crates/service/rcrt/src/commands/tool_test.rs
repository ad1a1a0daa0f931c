//! `rcrt tool test`: runs the examples of tools in a sandbox of this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::{NewBreadcrumb, ToolDefinition};
use rcrt_egress::{Egress, EgressOptions};
use rcrt_examples::{ExampleReport, ExampleRunner, ExampleStatus, has_failed};
use rcrt_sandbox::{Level, Sandbox, SandboxOptions};
use rcrt_validate::Author;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::junit;
use super::tool_lookup::{read, tools};
use super::tool_validate::{definitions, read as read_file};
use crate::assembly::{sandbox_level, worker_command};
use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::output::{Output, Style};
use crate::tool_file::{ExpectedRecord, LocatedFinding, is_tool};

/// Run the examples of tools as tests
#[derive(Debug, Args)]
#[command(after_long_help = "\
Each example runs in the real sandbox with the tool's permissions and limits. Its network and records are what the example states; the clock and random numbers are seeded; nothing is written. An example whose tool uses the \
network, and that states no `http`, is not run. The exit status is 1 if a tool is not valid or an example fails.

Examples:
  rcrt tool test my-tools
  rcrt tool test my-tools/weather.json --report junit
  rcrt tool test calculator")]
pub struct Test {
    /// Files of tools, folders of them, or names of tools in the store
    #[arg(required = true, value_name = "FILE|DIR|NAME")]
    targets: Vec<String>,
    /// Print a report in this format
    #[arg(long, value_name = "FORMAT")]
    report: Option<ReportFormat>,
    /// The required protection: strict, or minimal
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    sandbox: Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// The XML of JUnit.
    Junit,
}

/// A tool and what came of its examples.
#[derive(Debug, Serialize)]
pub struct TestedTool {
    pub name: String,
    /// Why its examples did not run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    pub examples: Vec<ExampleReport>,
}

impl TestedTool {
    fn has_failed(&self) -> bool {
        !self.errors.is_empty() || has_failed(&self.examples)
    }
}

impl Test {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let mut candidates = Vec::new();
        for target in &self.targets {
            candidates.extend(find(target, config).await?);
        }
        let options = SandboxOptions { level: self.sandbox, ..SandboxOptions::new(worker_command()?) };
        let sandbox = Arc::new(Sandbox::start(options).await.context("the sandbox cannot start")?);
        let runner = ExampleRunner::new(sandbox.clone(), Arc::new(Egress::new(EgressOptions::default())?));
        let mut tested = Vec::new();
        for candidate in candidates {
            tested.push(candidate.test(&runner).await);
        }
        sandbox.close().await;
        if self.report == Some(ReportFormat::Junit) {
            output.line(&junit::report(&tested))?;
        } else if output.is_json() {
            output.json(&tested)?;
        } else {
            print(output, &tested)?;
        }
        if tested.iter().any(TestedTool::has_failed) { Err(Failure::Shown.into()) } else { Ok(()) }
    }
}

/// A tool before its test.
struct CandidateTool {
    name: String,
    definition: Result<ToolDefinition, Vec<String>>,
}

impl CandidateTool {
    async fn test(self, runner: &ExampleRunner) -> TestedTool {
        let name = self.name;
        let definition = match self.definition {
            Ok(definition) => Arc::new(definition),
            Err(errors) => return TestedTool { name, errors, examples: Vec::new() },
        };
        match runner.run(Uuid::nil(), &definition, &CancellationToken::new()).await {
            Ok(examples) => TestedTool { name, errors: Vec::new(), examples },
            Err(failure) => TestedTool { name, errors: vec![failure.message], examples: Vec::new() },
        }
    }
}

async fn find(target: &str, config: &Config) -> anyhow::Result<Vec<CandidateTool>> {
    let path = Path::new(target);
    if path.exists() || path.extension().is_some_and(|end| ["json", "ts", "js"].iter().any(|known| end == *known)) {
        return files(path);
    }
    let store = connection::client(config)?;
    let found = tools(&store, Some(target)).await?;
    if found.is_empty() {
        return Err(Failure::NotFound(format!("there is no file, folder or tool {target:?}")).into());
    }
    let candidate = |record: &rcrt_breadcrumb::Breadcrumb| CandidateTool {
        name: target.to_owned(),
        definition: read(record).map_err(|error| vec![error]),
    };
    Ok(found.iter().map(candidate).collect())
}

fn files(path: &Path) -> anyhow::Result<Vec<CandidateTool>> {
    let expected = if path.is_dir() { ExpectedRecord::Any(Author::User) } else { ExpectedRecord::Tool(Author::User) };
    let mut found = Vec::new();
    let paths: Vec<PathBuf> = definitions(path)?;
    for path in paths {
        let file = read_file(&path, expected, &[])?;
        let is_other = file.record.as_ref().is_some_and(|record| !is_tool(record));
        if is_other && file.errors.is_empty() {
            continue;
        }
        let errors: Vec<String> = file.errors.iter().map(LocatedFinding::to_string).collect();
        let definition = match file.record.as_ref().filter(|_| errors.is_empty()).and_then(definition) {
            Some(definition) => Ok(definition),
            None => Err(errors),
        };
        found.push(CandidateTool { name: file.name, definition });
    }
    Ok(found)
}

fn definition(record: &NewBreadcrumb) -> Option<ToolDefinition> {
    rcrt_validate::seed::definition(record)?.ok()
}

fn print(output: Output, tested: &[TestedTool]) -> anyhow::Result<()> {
    let (mut passed, mut failed, mut not_run) = (0, 0, 0);
    for tool in tested {
        output.line(&tool.name)?;
        for error in &tool.errors {
            failed += 1;
            output.line(&format!("  {} {error}", output.paint(Style::Bad, "error:")))?;
        }
        for example in &tool.examples {
            let (style, word, count) = match example.status {
                ExampleStatus::Passed => (Style::Good, "passed", &mut passed),
                ExampleStatus::Failed => (Style::Bad, "failed", &mut failed),
                ExampleStatus::NotRun => (Style::Warning, "not run", &mut not_run),
            };
            *count += 1;
            let line = format!("  {} {} ({} ms)", output.paint(style, word), example.description, example.duration_ms);
            output.line(&line)?;
            for detail in details(example) {
                output.line(&format!("    {detail}"))?;
            }
        }
    }
    output.line(&format!("{passed} passed, {failed} failed, {not_run} not run"))
}

/// Why an example did not pass, and what it printed.
pub(super) fn details(example: &ExampleReport) -> Vec<String> {
    if example.status == ExampleStatus::Passed {
        return Vec::new();
    }
    let shown =
        |value: &Option<serde_json::Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let reason = example.reason.iter().cloned();
    let differences = example.differences.iter().map(|one| {
        format!("{} {}: expected {}, got {}", one.path, one.message, shown(&one.expected), shown(&one.actual))
    });
    let console = example.console.iter().map(|line| format!("console: {}", line.message));
    reason.chain(differences).chain(console).collect()
}
