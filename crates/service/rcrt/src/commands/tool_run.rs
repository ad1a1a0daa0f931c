//! `rcrt tool run`: runs a tool's file once in a sandbox of this machine, without publishing it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rcrt_breadcrumb::{Breadcrumbs, ToolDefinition};
use rcrt_egress::{EgressOptions, PrivateHost, Vault};
use rcrt_examples::{LiveReport, LiveRun};
use rcrt_executors::ProgressSink;
use rcrt_sandbox::{ConsoleLine, Level};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::call::readable;
use super::failure_lines::failure_lines;
use super::local_sandbox::LocalSandbox;
use super::local_secrets::LocalSecrets;
use super::tested_tool::{CandidateTool, candidates};
use crate::assembly::sandbox_level;
use crate::config::Config;
use crate::connection;
use crate::exit::{Failure, fail};
use crate::file_watch::FileWatch;
use crate::host_options::{DeniedHosts, PrivateHosts};
use crate::input;
use crate::output::Output;
use crate::progress_bar::CallProgressBar;
use crate::signals::Signals;

/// Run a tool's file once, without publishing it
#[derive(Debug, Args)]
#[command(after_long_help = "\
The tool runs in the real sandbox with its own permissions and limits. Its requests reach the real network. \
context.api finds no records and no other tools, and what the tool writes is shown and discarded; --server-records \
lets it use those of the server. A secret has the value example-NAME, or the one in --secrets, which the tool sees as a handle and \
can send to the hosts of its permissions.net.

Examples:
  rcrt tool run my-tools/greet.ts --input '{\"text\": \"Hello\"}'
  rcrt tool run my-tools/greet.ts --input @input.json --watch
  rcrt tool run my-tools/weather.json --input '{\"city\": \"Oslo\"}' --secrets secrets.json")]
pub struct Run {
    /// The JSON file of a tool, or the .ts or .js file beside it
    file: PathBuf,
    /// The input: JSON, @FILE, or - for stdin
    #[arg(long, default_value = "{}", value_name = "JSON|@FILE")]
    input: String,
    /// Run again whenever the tool's files or the file of --input change
    #[arg(long)]
    watch: bool,
    /// Let context.api read and write the records of the server
    #[arg(long)]
    server_records: bool,
    /// A JSON file with the values of secrets: {"NAME": "value"}
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    #[command(flatten)]
    private_hosts: PrivateHosts,
    #[command(flatten)]
    denied_hosts: DeniedHosts,
    /// The required protection: strict, or minimal
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    sandbox: Level,
}

impl Run {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        if self.watch && self.input == "-" {
            fail!(Usage, "--watch reads the input again for each run, and stdin has it only once; use --input @FILE");
        }
        if self.file.is_dir() {
            fail!(Usage, "{} is a folder; name the file of one tool", self.file.display());
        }
        let records = if self.server_records { Some(connection::store(config)?) } else { None };
        let signals = Signals::listen()?;
        let egress = EgressOptions {
            allowed_private: self.private_hosts.allowed.clone(),
            denied: self.denied_hosts.shared(),
            ..EgressOptions::default()
        };
        let sandbox = LocalSandbox::start(self.sandbox, egress).await?;
        let ended = if self.watch {
            self.watched(&sandbox, records, output, &signals.stop).await
        } else {
            self.once(&sandbox, records, output, &signals.stop).await
        };
        sandbox.close().await;
        if signals.stop.is_cancelled() { Err(Failure::Interrupted.into()) } else { ended }
    }

    /// Runs now and after each change, until `stop`.
    async fn watched(
        &self,
        sandbox: &LocalSandbox,
        records: Option<Arc<dyn Breadcrumbs>>,
        output: Output,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        let mut files: Vec<PathBuf> = ["json", "ts", "js"].map(|end| self.file.with_extension(end)).into();
        files.extend(self.input.strip_prefix('@').map(PathBuf::from));
        let mut watch = FileWatch::new(files);
        output.note(&format!("watching {}; Ctrl-C stops", self.file.display()));
        loop {
            let changed = tokio::select! {
                changed = watch.changed() => changed?,
                () = stop.cancelled() => return Ok(()),
            };
            match self.once(sandbox, records.clone(), output, stop).await {
                // Already printed.
                Err(error) if error.downcast_ref::<Failure>().is_some_and(Failure::is_shown) => {}
                Err(error) => eprintln!("rcrt: {error:#}"),
                Ok(()) => {}
            }
            watch.handled(changed.0);
        }
    }

    async fn once(
        &self,
        sandbox: &LocalSandbox,
        records: Option<Arc<dyn Breadcrumbs>>,
        output: Output,
        stop: &CancellationToken,
    ) -> anyhow::Result<()> {
        let definition = Arc::new(read(&self.file, &self.private_hosts.allowed, output)?);
        let run = LiveRun {
            input: input::json(&self.input, "--input")?,
            secrets: self.vault(&definition)?,
            breadcrumbs: records,
            progress: Arc::new(Bar(CallProgressBar::new(&definition.name))),
            recording: None,
        };
        let report = sandbox.runner.run_live(&definition, run, stop).await;
        show(&definition.name, report, !self.server_records, output)
    }
}

impl Run {
    fn vault(&self, definition: &ToolDefinition) -> anyhow::Result<Vault> {
        let Some(file) = &self.secrets else { return LocalSecrets::default().vault(definition) };
        let secrets = LocalSecrets::read(file)?;
        if let Some(other) = secrets.names().find(|name| !definition.required_secrets.contains(name)) {
            fail!(Usage, "--secrets: {other:?} is not among the required_secrets of {}", definition.name);
        }
        secrets.vault(definition)
    }
}

struct Bar(CallProgressBar);

impl ProgressSink for Bar {
    fn report(&self, fraction: Option<f64>, message: &str) {
        self.0.show(fraction, message);
    }
}

/// Reads the tool. Its errors are printed.
fn read(file: &Path, allowed: &[PrivateHost], output: Output) -> anyhow::Result<ToolDefinition> {
    let found = candidates(file, allowed, &[])?.into_iter().next();
    let Some(CandidateTool { name, definition, .. }) = found else {
        fail!(Usage, "{} is not the file of a tool", file.display());
    };
    match definition {
        Ok(definition) if definition.is_code() => Ok(definition),
        Ok(_) => {
            let message = format!("{name} has no code; `rcrt tool run` runs tools of the schema tool.code.v1");
            Err(Failure::Usage(message).into())
        }
        Err(errors) if output.is_json() => {
            output.json(&json!({"name": name, "errors": errors}))?;
            Err(Failure::Shown.into())
        }
        Err(errors) => {
            for error in errors {
                eprintln!("error: {error}");
            }
            Err(Failure::Shown.into())
        }
    }
}

/// Prints the output, and on stderr everything else, as `rcrt call` does.
fn show(name: &str, report: LiveReport, discards_writes: bool, output: Output) -> anyhow::Result<()> {
    let LiveReport { result, writes, console, duration_ms, .. } = report;
    if output.is_json() {
        let failure = result
            .as_ref()
            .err()
            .map(|failure| json!({"code": failure.code, "message": failure.message, "details": failure.details}));
        output.json(&json!({
            "name": name,
            "output": result.as_ref().ok(),
            "error": failure,
            "writes": writes,
            "console": console,
            "duration_ms": duration_ms,
        }))?;
    } else {
        for ConsoleLine { level, message } in &console {
            eprintln!("[{}] {message}", json!(level).as_str().unwrap_or("log"));
        }
        for write in writes.iter().filter(|_| discards_writes) {
            eprintln!("would write {write}");
        }
    }
    match result {
        Ok(value) => {
            if !output.is_json() {
                output.line(&readable(&value))?;
                output.note(&format!("{name}: {duration_ms} ms"));
            }
            Ok(())
        }
        Err(failure) => {
            let text = format!("{name}: {}: {}", failure.code, failure.message);
            if !output.is_json() {
                eprintln!("rcrt: {text}");
                let details: Option<&Value> = failure.details.as_ref();
                for line in failure_lines(&failure.message, details) {
                    eprintln!("  {line}");
                }
            }
            Err(Failure::ToolError(text).into())
        }
    }
}
