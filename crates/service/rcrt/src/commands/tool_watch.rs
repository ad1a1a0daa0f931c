//! Tests tools again whenever their files change, for `rcrt tool test --watch` and `rcrt tool dev`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rcrt_egress::{EgressOptions, PrivateHost};
use rcrt_examples::ExampleStatus;
use rcrt_sandbox::Level;
use rcrt_validate::Author;
use serde_json::json;

use super::folder_publisher::{Publication, Publisher};
use super::local_sandbox::LocalSandbox;
use super::tested_tool::{CandidateTool, TestedTool, candidate, is_file, lines};
use crate::exit::{Failure, fail};
use crate::file_watch::{FileWatch, Snapshot, Stamp};
use crate::output::{Output, Style, counted};
use crate::signals::Signals;
use crate::tool_file::{ExpectedRecord, is_record};

const SOURCES: [&str; 3] = ["json", "ts", "js"];

/// Tests the tools of the targets now and after each change, until the command is stopped. With a
/// publisher, tools without an error are published.
pub async fn run(
    targets: &[PathBuf],
    allowed: &[PrivateHost],
    level: Level,
    publisher: Option<&Publisher>,
    output: Output,
) -> anyhow::Result<()> {
    let mut roots = Vec::new();
    for target in targets {
        if target.is_dir() {
            roots.push(target.clone());
        } else if is_file(target) && target.with_extension("json").exists() {
            roots.extend(SOURCES.map(|end| target.with_extension(end)));
        } else {
            fail!(Usage, "{} is neither the file of a tool nor a folder, so it cannot be watched", target.display());
        }
    }
    let signals = Signals::listen()?;
    let sandbox = LocalSandbox::start(level, EgressOptions::default()).await?;
    let watched: Vec<String> = targets.iter().map(|target| target.display().to_string()).collect();
    output.note(&format!("watching {}; Ctrl-C stops", watched.join(", ")));
    let watch = ToolWatch { files: FileWatch::new(roots), tested: BTreeMap::new(), allowed, sandbox: &sandbox, output };
    tokio::select! {
        never = watch.run(publisher) => match never {},
        () = signals.stop.cancelled() => {}
    }
    sandbox.close().await;
    Err(Failure::Interrupted.into())
}

/// The state of the files of one tool.
type Stamps = [Option<Stamp>; SOURCES.len()];

struct ToolWatch<'w> {
    files: FileWatch,
    /// The state of each JSON file, and of the sources beside it, that was handled.
    tested: BTreeMap<PathBuf, Stamps>,
    allowed: &'w [PrivateHost],
    sandbox: &'w LocalSandbox,
    output: Output,
}

impl ToolWatch<'_> {
    /// An error is printed once, and the files are tried again until that succeeds.
    async fn run(mut self, publisher: Option<&Publisher>) -> std::convert::Infallible {
        let mut last_error = None;
        loop {
            match self.step(publisher).await {
                Ok(()) => last_error = None,
                Err(error) => {
                    let text = format!("{error:#}");
                    if last_error.as_ref() != Some(&text) {
                        eprintln!("rcrt: {text}; trying again");
                    }
                    last_error = Some(text);
                }
            }
        }
    }

    async fn step(&mut self, publisher: Option<&Publisher>) -> anyhow::Result<()> {
        let (state, since) = self.files.changed().await?;
        let stamps = stamps(&state);
        let changed = stamps.iter().filter(|&(path, stamps)| self.tested.get(path) != Some(stamps));
        let mut candidates = Vec::new();
        for (path, _) in changed {
            match candidate(path.clone(), ExpectedRecord::Any(Author::User), self.allowed, &[]) {
                Ok(found) => candidates.extend(found),
                Err(error) => candidates.push(CandidateTool {
                    name: path.display().to_string(),
                    path: Some(path.clone()),
                    definition: Err(vec![format!("{error:#}")]),
                }),
            }
        }
        let mut to_publish = Vec::new();
        for candidate in candidates {
            let tested = candidate.test(&self.sandbox.runner).await;
            if publisher.is_none() || tested.has_failed() {
                self.print(&tested, None, since)?;
            } else {
                to_publish.push(tested);
            }
        }
        if let Some(publisher) = publisher.filter(|_| !to_publish.is_empty()) {
            let paths: Vec<&Path> = to_publish.iter().filter_map(|tool| tool.path.as_deref()).collect();
            let set = publisher.read(&paths).await?;
            // Only what was tested is published.
            if !self.files.is_current(&state).await? {
                return Ok(());
            }
            let mut published = publisher.publish(&set).await?;
            for tool in &to_publish {
                let publication = tool.path.as_ref().and_then(|path| published.remove(path));
                self.print(tool, publication.as_ref(), since)?;
            }
        }
        self.tested = stamps;
        self.files.handled(state);
        Ok(())
    }

    /// One line for the tool, and the details of what failed.
    fn print(&self, tool: &TestedTool, publication: Option<&Publication>, since: Instant) -> anyhow::Result<()> {
        let (output, took) = (self.output, since.elapsed().as_millis() as u64);
        if output.is_json() {
            let TestedTool { name, errors, examples, .. } = tool;
            return output.json_line(&json!({
                "name": name,
                "errors": errors,
                "examples": examples,
                "published": publication,
                "duration_ms": took,
            }));
        }
        let is_good = !tool.has_failed() && publication.is_none_or(|publication| publication.is_in_effect);
        let style = if is_good { Style::Good } else { Style::Bad };
        let published = publication.map(|publication| format!("; {}", publication.text)).unwrap_or_default();
        let verdict = output.paint(style, &format!("{}{published}", summary(tool)));
        let now = chrono::Local::now().format("%H:%M:%S");
        output.line(&format!("{now} {}: {verdict} ({took} ms)", tool.name))?;
        for line in lines(output, tool, |example| example.status != ExampleStatus::Passed) {
            output.line(&line)?;
        }
        Ok(())
    }
}

/// The files of each tool, by its JSON file.
fn stamps(state: &Snapshot) -> BTreeMap<PathBuf, Stamps> {
    let records = state.keys().filter(|path| path.to_str().is_some_and(is_record));
    records.map(|path| (path.clone(), SOURCES.map(|end| state.get(&path.with_extension(end)).copied()))).collect()
}

/// `2 passed, 1 failed`.
fn summary(tool: &TestedTool) -> String {
    if !tool.errors.is_empty() {
        return counted(tool.errors.len() as u64, "error", "errors");
    }
    let words =
        [(ExampleStatus::Passed, "passed"), (ExampleStatus::Failed, "failed"), (ExampleStatus::NotRun, "not run")];
    let counts = words.iter().filter_map(|(status, word)| {
        let count = tool.examples.iter().filter(|example| example.status == *status).count();
        (count > 0).then(|| format!("{count} {word}"))
    });
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() { "no examples".to_owned() } else { counts.join(", ") }
}
