//! `rcrt tool test`: runs the examples of tools in a sandbox of this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rcrt_egress::{EgressOptions, PrivateHost};
use rcrt_examples::{ExampleRunner, ExampleStatus};
use rcrt_sandbox::Level;
use tokio_util::sync::CancellationToken;

use super::junit;
use super::local_sandbox::LocalSandbox;
use super::tested_tool::{CandidateTool, TestedTool, candidates, is_file, lines};
use super::tool_lookup::{read, tools};
use super::tool_record::{self, RecordOptions, Recorder};
use super::tool_watch;
use crate::assembly::sandbox_level;
use crate::config::Config;
use crate::connection;
use crate::exit::{Failure, fail};
use crate::host_options::PrivateHosts;
use crate::output::Output;

/// Run the examples of tools as tests
#[derive(Debug, Args)]
#[command(after_long_help = "\
Each example runs in the real sandbox with the tool's permissions and limits. Its network and records are what the example states; the clock and random numbers are seeded; nothing is written. An example whose tool uses the \
network, and that states no `http`, is not run. The exit status is 1 if a tool is not valid or an example fails.

Examples:
  rcrt tool test my-tools
  rcrt tool test my-tools --watch
  rcrt tool test my-tools --fuzz 200
  rcrt tool test my-tools/weather.json --record --secrets secrets.json
  rcrt tool test my-tools/weather.json --report junit
  rcrt tool test calculator")]
pub struct Test {
    /// Files of tools, folders of them, or names of tools in the store
    #[arg(required = true, value_name = "FILE|DIR|NAME")]
    targets: Vec<String>,
    /// Keep running, and test each tool of a file or folder again when its files change
    #[arg(long, conflicts_with = "report")]
    watch: bool,
    /// Also run each tool with N inputs that are made from its input_schema, and require outputs
    /// that fit output_schema, or failures that the tool states
    #[arg(long, value_name = "N", conflicts_with = "watch", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    fuzz: Option<u32>,
    /// With --fuzz: the same number makes the same inputs
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "fuzz")]
    seed: u64,
    /// Print a report in this format
    #[arg(long, value_name = "FORMAT")]
    report: Option<ReportFormat>,
    /// The required protection: strict, or minimal
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    sandbox: Level,
    #[command(flatten)]
    private_hosts: PrivateHosts,
    #[command(flatten)]
    recording: RecordOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// The XML of JUnit.
    Junit,
}

impl Test {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let allowed = &self.private_hosts.allowed;
        if self.watch {
            let targets: Vec<PathBuf> = self.targets.iter().map(PathBuf::from).collect();
            return tool_watch::run(&targets, allowed, self.sandbox, None, output).await;
        }
        let mut candidates = Vec::new();
        for target in &self.targets {
            candidates.extend(find(target, allowed, config).await?);
        }
        let stored = candidates.iter().find(|tool| tool.path.is_none());
        if let Some(tool) = stored.filter(|_| self.recording.record || self.recording.update) {
            fail!(Usage, "{} is a tool of the store; --record and --update rewrite files", tool.name);
        }
        let recorder = Recorder::new(&self.recording, config, output)?;
        let egress = EgressOptions { allowed_private: allowed.clone(), ..EgressOptions::default() };
        let sandbox = LocalSandbox::start(self.sandbox, egress).await?;
        let mut tested = Vec::new();
        let ended = async {
            for candidate in candidates {
                tested.push(self.test(candidate, &sandbox.runner, &recorder, output).await?);
            }
            anyhow::Ok(())
        };
        let ended = ended.await;
        sandbox.close().await;
        ended?;
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

impl Test {
    async fn test(
        &self,
        mut tool: CandidateTool,
        runner: &ExampleRunner,
        recorder: &Recorder,
        output: Output,
    ) -> anyhow::Result<TestedTool> {
        let problems = if self.recording.record { recorder.record(&mut tool, runner).await? } else { Vec::new() };
        let mut tested = tool.test(runner).await;
        if self.recording.update && tool_record::update(&mut tool, &tested.examples, output)? {
            tested = tool.test(runner).await;
        }
        tested.errors.extend(problems);
        if let (Some(inputs), Ok(definition)) = (self.fuzz, &tool.definition)
            && definition.is_code()
        {
            let definition = Arc::new(definition.clone());
            match runner.fuzz(&definition, inputs, self.seed, &CancellationToken::new()).await {
                Ok(report) => tested.examples.push(report),
                // The test of the examples has reported it.
                Err(failure) if tested.errors.contains(&failure.message) => {}
                Err(failure) => tested.errors.push(failure.message),
            }
        }
        Ok(tested)
    }
}

async fn find(target: &str, allowed: &[PrivateHost], config: &Config) -> anyhow::Result<Vec<CandidateTool>> {
    let path = Path::new(target);
    if is_file(path) {
        // Examples have their own network, and egress checks the rest.
        return candidates(path, allowed, &["net-host"]);
    }
    let store = connection::client(config)?;
    let found = tools(&store, Some(target)).await?;
    if found.is_empty() {
        fail!(NotFound, "there is no file, folder or tool {target:?}");
    }
    let candidate = |record: &rcrt_breadcrumb::Breadcrumb| CandidateTool {
        name: target.to_owned(),
        path: None,
        definition: read(record).map_err(|error| vec![error]),
    };
    Ok(found.iter().map(candidate).collect())
}

fn print(output: Output, tested: &[TestedTool]) -> anyhow::Result<()> {
    let (mut passed, mut failed, mut not_run) = (0, 0, 0);
    for tool in tested {
        output.line(&tool.name)?;
        failed += tool.errors.len();
        for example in &tool.examples {
            *match example.status {
                ExampleStatus::Passed => &mut passed,
                ExampleStatus::Failed => &mut failed,
                ExampleStatus::NotRun => &mut not_run,
            } += 1;
        }
        for line in lines(output, tool, |_| true) {
            output.line(&line)?;
        }
    }
    output.line(&format!("{passed} passed, {failed} failed, {not_run} not run"))
}
