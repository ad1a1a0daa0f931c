//! `rcrt runners`: the runners that are live, what they do, and whether they take calls.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use rcrt_breadcrumb::{RunnerDrain, RunnerInfo, Runners as _, SlotCount};

use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::output::{Output, one_line};

/// List the live runners with their slots and calls, or drain one
#[derive(Debug, Args)]
#[command(after_long_help = "\
WORKER counts the slots of calls of code and native tools, WAITING those of HTTP tools: used of all. CLAIMED calls wait \
in the runner, RUNNING ones have begun. A runner is listed until it stops, or until the end of its lease if it is lost.

Examples:
  rcrt runners
  rcrt runners --output json
  rcrt runners drain worker-3
  rcrt runners resume worker-3")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runners {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Ask a runner to take no more calls and to finish those that it has
    ///
    /// It keeps running: stop its process when RUNNING is 0. Its calls that wait for calls of other
    /// tools need another runner for those.
    Drain(Named),
    /// Let a runner that was asked to drain take calls again
    Resume(Named),
}

#[derive(Debug, Args)]
struct Named {
    /// The runner's id, the end of its id, or its host
    #[arg(value_name = "RUNNER")]
    runner: String,
}

impl Runners {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self.action {
            None => list(config, output).await,
            Some(Action::Drain(Named { runner })) => drain(config, output, &runner, true).await,
            Some(Action::Resume(Named { runner })) => drain(config, output, &runner, false).await,
        }
    }
}

async fn list(config: &Config, output: Output) -> anyhow::Result<()> {
    let runners = connection::client(config)?.runners().await?;
    if runners.is_empty() {
        output.note("no runner is live; `rcrt runner` starts one");
    }
    let heading = [
        "ID",
        "HOST",
        "VERSION",
        "STATE",
        "WORKER",
        "WAITING",
        "CLAIMED",
        "RUNNING",
        "STARTED (UTC)",
        "REPORTED (UTC)",
        "FOLDER",
    ];
    output.list(&runners, &heading, row)
}

async fn drain(config: &Config, output: Output, name: &str, drain: bool) -> anyhow::Result<()> {
    let client = connection::client(config)?;
    let runners = client.runners().await?;
    let runner = named(&runners, name)?;
    let asked = client.drain_runner(runner.runner_id, RunnerDrain { drain }).await?;
    if output.is_json() {
        return output.json(&asked);
    }
    let what = if drain { "takes no more calls" } else { "takes calls again" };
    let calls = asked.claimed + asked.running;
    output.line(&format!("the runner {} on {} {what}; it has {calls} calls", asked.runner_id, asked.host))
}

/// The one live runner with this id, end of an id, or host.
fn named<'a>(runners: &'a [RunnerInfo], name: &str) -> anyhow::Result<&'a RunnerInfo> {
    let is_named = |runner: &&RunnerInfo| runner.host == name || runner.runner_id.to_string().ends_with(name);
    let mut found = runners.iter().filter(is_named);
    match (found.next(), found.next()) {
        (Some(runner), None) => Ok(runner),
        (None, _) => {
            let what = format!("no live runner has the id or the host {name:?}; `rcrt runners` lists them");
            Err(Failure::NotFound(what).into())
        }
        (Some(_), Some(_)) => {
            let what =
                format!("several live runners are on the host {name:?} or have an id that ends so; name one by its id");
            Err(Failure::Usage(what).into())
        }
    }
}

fn row(runner: &RunnerInfo) -> Vec<String> {
    let slots = |count: SlotCount| format!("{}/{}", count.used, u64::from(count.used) + u64::from(count.free));
    let time = |at: DateTime<Utc>| at.format("%Y-%m-%d %H:%M:%S").to_string();
    vec![
        runner.runner_id.to_string(),
        one_line(&runner.host, 40),
        one_line(&runner.version, 20),
        if runner.draining { "draining" } else { "ready" }.into(),
        slots(runner.slots.worker),
        slots(runner.slots.waiting),
        runner.claimed.to_string(),
        runner.running.to_string(),
        time(runner.started_at),
        time(runner.reported_at),
        one_line(runner.working_folder.as_deref().unwrap_or_default(), 200),
    ]
}
