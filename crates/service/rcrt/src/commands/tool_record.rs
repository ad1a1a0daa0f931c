//! `rcrt tool test --record` and `--update`: rewrite the examples of tools in their files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use rcrt_breadcrumb::{Breadcrumbs, Example, ToolDefinition};
use rcrt_examples::{ExampleReport, ExampleRunner, updated};
use tokio_util::sync::CancellationToken;

use super::example_file;
use super::local_secrets::LocalSecrets;
use super::tested_tool::CandidateTool;
use crate::config::Config;
use crate::connection;
use crate::output::Output;

#[derive(Debug, Args)]
pub struct RecordOptions {
    /// Run each example that has no http, breadcrumbs and writes once on the real network, and
    /// write what it used into the file, with secrets redacted
    #[arg(long, conflicts_with = "watch")]
    pub record: bool,
    /// With --record: let context.api read and write the records of the server
    #[arg(long, requires = "record")]
    server_records: bool,
    /// With --record: a JSON file with the values of secrets, {"NAME": "value"}
    #[arg(long, value_name = "FILE", requires = "record")]
    secrets: Option<std::path::PathBuf>,
    /// Rewrite the expected outputs and writes that differ
    #[arg(long, conflicts_with = "watch")]
    pub update: bool,
}

/// What a recording gets from outside of its example.
pub struct Recorder {
    secrets: LocalSecrets,
    records: Option<Arc<dyn Breadcrumbs>>,
    output: Output,
}

impl Recorder {
    pub fn new(options: &RecordOptions, config: &Config, output: Output) -> anyhow::Result<Self> {
        let secrets = options.secrets.as_deref().map(LocalSecrets::read).transpose()?.unwrap_or_default();
        let records = if options.server_records { Some(connection::store(config)?) } else { None };
        Ok(Self { secrets, records, output })
    }

    /// Records the examples of a tool that state nothing but input and output, and writes them into
    /// its file. Returns the problems of those that cannot be recorded.
    pub async fn record(&self, tool: &mut CandidateTool, runner: &ExampleRunner) -> anyhow::Result<Vec<String>> {
        let (Some(path), Ok(definition)) = (&tool.path, &mut tool.definition) else { return Ok(Vec::new()) };
        if !definition.is_code() {
            return Ok(Vec::new());
        }
        let (shared, mut recorded, mut problems) = (Arc::new(definition.clone()), BTreeMap::new(), Vec::new());
        for (at, example) in shared.examples.iter().enumerate().filter(|(_, example)| is_open(example)) {
            let secrets = self.secrets.vault(&shared)?;
            let stop = CancellationToken::new();
            match runner.record(&shared, example, secrets, self.records.clone(), &stop).await {
                Ok(Some(example)) => drop(recorded.insert(at, example)),
                Ok(None) => {}
                Err(problem) => problems.push(format!("{}: not recorded: {problem}", example.description)),
            }
        }
        write(path, definition, &recorded, "recorded", self.output)?;
        Ok(problems)
    }
}

fn is_open(example: &Example) -> bool {
    example.http.is_none() && example.breadcrumbs.is_empty() && example.writes.is_none()
}

/// Writes the results of examples that differ into the tool's file. Returns whether any did.
pub fn update(tool: &mut CandidateTool, reports: &[ExampleReport], output: Output) -> anyhow::Result<bool> {
    let (Some(path), Ok(definition)) = (&tool.path, &mut tool.definition) else { return Ok(false) };
    let results = definition.examples.iter().zip(reports).enumerate();
    let changed: BTreeMap<usize, Example> =
        results.filter_map(|(at, (example, report))| Some((at, updated(example, report)?))).collect();
    write(path, definition, &changed, "updated", output)?;
    Ok(!changed.is_empty())
}

fn write(
    path: &Path,
    definition: &mut ToolDefinition,
    changed: &BTreeMap<usize, Example>,
    word: &str,
    output: Output,
) -> anyhow::Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    example_file::rewrite(path, changed)?;
    for (at, example) in changed {
        output.note(&format!("{word} {}: {}", definition.name, example.description));
        definition.examples[*at] = example.clone();
    }
    Ok(())
}
