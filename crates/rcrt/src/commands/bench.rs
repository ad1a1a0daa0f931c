//! `rcrt bench`: the throughput and the latency of an installed system.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use breadcrumb::{Breadcrumb, Breadcrumbs, CatalogEntry, StoreError};
use clap::{Args, ValueEnum};
use client::Client;
use load::{Pace, Plan, PlanError, drive};
use serde_json::{Value, json};

use super::bench_doors::{CallMethod, Calls, EventDoor, InvokeDoor};
use super::bench_report::Findings;
use super::tool;
use crate::config::Config;
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::ConsoleProgress;
use crate::signals::Signals;
use crate::{connection, input};

/// Callers that wait for their answers, unless the command says otherwise.
const CALLERS: usize = 32;
/// The bound on calls in flight at a steady rate: beyond it, one that is due waits, and that counts.
const UNDER_WAY: usize = 1000;

/// Put a running system under load and measure it
#[derive(Debug, Args)]
#[command(after_long_help = "\
By default as many callers as --in-flight says each send the next call when the last one is answered: that shows how \
many calls per second the system carries. With --rate calls fall due at a steady rate, whatever becomes of the earlier \
ones, and each one's latency counts from when it was due: that shows how long callers wait under such a load, stalls \
included.

It works through the server's public door as any agent does. Each call is written to the store like any other and \
stays there, in the workspace `bench`; use a data folder of its own where that matters. Ctrl-C ends the run early and \
shows what was measured until then.

Examples:
  rcrt bench
  rcrt bench --tool echo --input '{\"message\": \"hello\"}' --in-flight 1
  rcrt bench --rate 200 --duration 60 --json result.json --svg latency.svg")]
pub struct Bench {
    /// The tool to call
    #[arg(long, default_value = "calculator", value_name = "NAME")]
    tool: String,
    /// Its input: JSON, `-` for stdin, or `@file` [default: the input of the tool's first example]
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// How many calls may be under way at a time [default: 32; with --rate 1000]
    #[arg(long, value_name = "N")]
    in_flight: Option<usize>,
    /// Send so many calls per second, whatever becomes of the earlier ones
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    rate: Option<f64>,
    /// How long to send calls that are not counted, in seconds
    #[arg(long, default_value = "3", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    warm_up: Duration,
    /// How long to measure, in seconds
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    duration: Duration,
    /// How calls are made
    #[arg(long, default_value = "events", value_name = "DOOR")]
    door: Door,
    /// Write what was found to this file, for programs
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the latencies to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Door {
    /// Write a request record and wait for its response on the event stream
    Events,
    /// Ask and get the answer in one round trip
    Invoke,
}

impl Bench {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let plan = self.plan()?;
        let given = self.input.as_deref().map(|text| input::json(text, "--input")).transpose()?;
        if self.json.is_some() && self.json == self.svg {
            return Err(Failure::Usage("--json and --svg name the same file; give each its own".into()).into());
        }
        // What cannot be written is known before anybody waits for it.
        for path in [&self.json, &self.svg].into_iter().flatten() {
            check_writable(path)
                .map_err(|error| Failure::Usage(format!("{} cannot be written: {error}", path.display())))?;
        }
        let signals = Signals::listen()?;
        let work = self.measure(config, output, &plan, given, &signals);
        let findings = tokio::select! {
            found = work => found?,
            () = signals.hurry.cancelled() => return Err(Failure::Interrupted.into()),
        };
        let measured = findings.measured();
        if let Some(path) = &self.json {
            let text = serde_json::to_string_pretty(&findings)? + "\n";
            std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        if let Some(path) = self.svg.as_ref().filter(|_| !measured.latency.is_empty()) {
            let picture = findings.picture().with_context(|| format!("no picture for {}", path.display()))?;
            std::fs::write(path, picture).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        findings.show(output)?;
        if measured.is_stopped {
            return Err(Failure::Interrupted.into());
        }
        if measured.answered() == 0 {
            anyhow::bail!("no call was answered well");
        }
        Ok(())
    }

    async fn measure(
        &self,
        config: &Config,
        output: Output,
        plan: &Plan,
        given: Option<Value>,
        signals: &Signals,
    ) -> anyhow::Result<Findings> {
        let client = connection::client(config)?;
        let calls = async {
            let version = client.health().await?.version;
            let calls = self.calls(&client, given).await?;
            let failed = calls.once().await?;
            Ok::<_, anyhow::Error>((version, calls, failed))
        };
        let (version, calls, failed) = tokio::select! {
            made = calls => made?,
            () = signals.stop.cancelled() => return Err(Failure::Interrupted.into()),
        };
        if let Some(told) = failed {
            return Err(first_call_failed(&told, output));
        }
        if !output.is_json() {
            let whole = (plan.warm_up + plan.duration).as_secs_f64();
            ConsoleProgress::new().say(&format!("calling {} for {whole:.0} s; Ctrl-C ends it early", self.tool));
        }
        let measured = drive(calls, plan, &signals.stop).await;
        Ok(Findings::new(self.command(plan), version, self.told(plan), measured))
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let pace = match self.rate {
            None => Pace::Closed { in_flight: self.in_flight.unwrap_or(CALLERS) },
            Some(per_second) => Pace::Open { per_second, in_flight: self.in_flight.unwrap_or(UNDER_WAY) },
        };
        let plan = Plan { pace, warm_up: self.warm_up, duration: self.duration };
        plan.check().map_err(|error| {
            let option = match error {
                PlanError::NoneInFlight | PlanError::TooManyInFlight(_) => "--in-flight",
                PlanError::Rate(_) => "--rate",
                PlanError::Duration | PlanError::NoneDue(_) => "--duration",
            };
            Failure::Usage(format!("{option}: {error}"))
        })?;
        Ok(plan)
    }

    /// What is called, and through which door. Says at once where the tool cannot be called.
    async fn calls(&self, client: &Client, given: Option<Value>) -> anyhow::Result<Arc<Calls>> {
        let tool = match client.tool(&self.tool).await {
            Ok(CatalogEntry::Offered(tool)) => tool,
            Ok(CatalogEntry::Waiting(tool)) => {
                anyhow::bail!("{} cannot be called yet. {}", self.tool, tool.waits_for.join(" "))
            }
            Err(StoreError::Invalid(why)) => return Err(Failure::NotFound(why.to_string()).into()),
            Err(error) => return Err(error.into()),
        };
        let input = match given {
            Some(input) => input,
            None => first_example(&client.get(tool.tool_id).await?),
        };
        let door: Box<dyn CallMethod> = match self.door {
            Door::Events => Box::new(EventDoor::open(client.clone()).await?),
            Door::Invoke => Box::new(InvokeDoor::new(client.clone())),
        };
        Ok(Arc::new(Calls { door, tool: self.tool.clone(), input }))
    }

    /// The command that repeats the run. Whatever says where the server is and who asks is left out: secrets are in it.
    fn command(&self, plan: &Plan) -> String {
        let (warm_up, duration) = (plan.warm_up.as_secs_f64(), plan.duration.as_secs_f64());
        let input = self.input.as_ref().map(|input| format!("--input '{}'", input.replace('\'', r"'\''")));
        let options = [
            Some(format!("rcrt bench --tool {}", self.tool)),
            input,
            Some(format!("--in-flight {}", plan.in_flight())),
            self.rate.map(|rate| format!("--rate {rate}")),
            Some(format!("--warm-up {warm_up} --duration {duration} --door {}", self.door_name())),
        ];
        options.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn told(&self, plan: &Plan) -> Value {
        json!({
            "tool": self.tool,
            "door": self.door_name(),
            "in_flight": plan.in_flight(),
            "rate": self.rate,
            "warm_up_s": plan.warm_up.as_secs_f64(),
            "duration_s": plan.duration.as_secs_f64(),
        })
    }

    fn door_name(&self) -> &'static str {
        match self.door {
            Door::Events => "events",
            Door::Invoke => "invoke",
        }
    }
}

/// A tool that fails is not worth measuring.
#[allow(clippy::print_stderr)]
fn first_call_failed(told: &str, output: Output) -> anyhow::Error {
    let told = format!("nothing was measured, since the first call failed: {told}");
    if !output.is_json() {
        eprintln!("rcrt: {told}");
    }
    Failure::ToolError(told).into()
}

/// Leaves nothing behind where there was no file.
fn check_writable(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return OpenOptions::new().append(true).open(path).map(drop);
    }
    OpenOptions::new().create_new(true).write(true).open(path)?;
    std::fs::remove_file(path)
}

/// What the tool's author calls it with first; nothing where there is no example.
fn first_example(record: &Breadcrumb) -> Value {
    let example = tool::read(record).ok().and_then(|tool| tool.examples.into_iter().next());
    example.map_or_else(|| json!({}), |example| example.input)
}

/// Reads a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds, such as 2.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "must be 0 or more seconds".to_owned())
}
