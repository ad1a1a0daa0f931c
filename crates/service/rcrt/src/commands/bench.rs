//! `rcrt bench`: the throughput and the latency of an installed system.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use rcrt_breadcrumb::{Breadcrumb, CatalogEntry, Records, StoreError};
use rcrt_client::Client;
use rcrt_load::{Pace, Plan, PlanError, drive};
use serde_json::{Value, json};

use super::bench_methods::{CallMethod, Calls, EventMethod, InvokeMethod};
use super::bench_report::Findings;
use super::tool_lookup;
use crate::config::Config;
use crate::exit::{Failure, fail};
use crate::output::Output;
use crate::progress;
use crate::signals::Signals;
use crate::{connection, input};

/// Concurrent callers by default, each of which waits for its response.
const CALLERS: usize = 32;
/// Concurrent calls at a steady rate. Beyond this, a due call waits, and that counts as latency.
const MAX_IN_FLIGHT: usize = 1000;

/// Put load on a running system and measure it
#[derive(Debug, Args)]
#[command(after_long_help = "\
By default, each of --in-flight callers sends its next call when it has the response to the last one: this measures how \
many calls per second the system handles. With --rate, calls are due at a steady rate, regardless of earlier calls, and \
latency counts from the time when a call was due: this measures how long callers wait under such a load, including \
stalls.

It uses the server's public API, as any agent does. Each call is written to the store and stays there, in the workspace \
`bench`; use a separate data folder if that matters. Ctrl-C stops the run early and shows the results so far.

Examples:
  rcrt bench
  rcrt bench --tool echo --input '{\"message\": \"hello\"}' --in-flight 1
  rcrt bench --rate 200 --duration 60 --json result.json --svg latency.svg")]
pub struct Bench {
    /// The tool to call
    #[arg(long, default_value = "calculator", value_name = "NAME")]
    tool: String,
    /// The input: JSON, `-` for stdin, or `@file` [default: the input of the tool's first example]
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Maximum number of concurrent calls [default: 32; with --rate 1000]
    #[arg(long, value_name = "N")]
    in_flight: Option<usize>,
    /// Calls per second, regardless of earlier calls
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    rate: Option<f64>,
    /// How long to send calls that are not counted, in seconds
    #[arg(long, default_value = "3", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    warm_up: Duration,
    /// How long to measure, in seconds
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    duration: Duration,
    /// How calls are made
    #[arg(long, default_value = "events", value_name = "METHOD")]
    method: Method,
    /// Write the results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a chart of the latencies to this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Write a request record and wait for its response on the event stream
    Events,
    /// Send the request and get the response in one round trip
    Invoke,
}

impl Bench {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let plan = self.plan()?;
        let given = self.input.as_deref().map(|text| input::json(text, "--input")).transpose()?;
        if self.json.is_some() && self.json == self.svg {
            fail!(Usage, "--json and --svg name the same file; give each its own");
        }
        // Check before the run that the files can be written.
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
            let picture =
                findings.picture().with_context(|| format!("the chart {} cannot be drawn", path.display()))?;
            std::fs::write(path, picture).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        findings.show(output)?;
        if measured.is_stopped {
            return Err(Failure::Interrupted.into());
        }
        if measured.answered() == 0 {
            anyhow::bail!("no call succeeded");
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
        if let Some(reason) = failed {
            return Err(first_call_failed(&reason, output));
        }
        if !output.is_json() {
            let whole = (plan.warm_up + plan.duration).as_secs_f64();
            progress::say(&format!("calling {} for {whole:.0} s; Ctrl-C stops it early", self.tool));
        }
        let measured = drive(calls, plan, &signals.stop).await;
        Ok(Findings::new(self.command(plan), version, self.parameters(plan), measured))
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let pace = match self.rate {
            None => Pace::Closed { in_flight: self.in_flight.unwrap_or(CALLERS) },
            Some(per_second) => Pace::Open { per_second, in_flight: self.in_flight.unwrap_or(MAX_IN_FLIGHT) },
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

    /// Prepares the calls. Fails at once if the tool cannot be called.
    async fn calls(&self, client: &Client, given: Option<Value>) -> anyhow::Result<Arc<Calls>> {
        let tool = match client.tool(&self.tool).await {
            Ok(CatalogEntry::Offered(tool)) => tool,
            Ok(CatalogEntry::Waiting(tool)) => {
                anyhow::bail!("{} cannot be called yet. {}", self.tool, tool.missing_requirements.join(" "))
            }
            Err(StoreError::Invalid(why)) => return Err(Failure::NotFound(why.to_string()).into()),
            Err(error) => return Err(error.into()),
        };
        let input = match given {
            Some(input) => input,
            None => first_example(&client.get(tool.tool_id).await?),
        };
        let method: Box<dyn CallMethod> = match self.method {
            Method::Events => Box::new(EventMethod::open(client.clone()).await?),
            Method::Invoke => Box::new(InvokeMethod::new(client.clone())),
        };
        Ok(Arc::new(Calls { method, tool: self.tool.clone(), input }))
    }

    /// The command that repeats the run, without the options of the server and the agent, which can
    /// contain secrets.
    fn command(&self, plan: &Plan) -> String {
        let (warm_up, duration) = (plan.warm_up.as_secs_f64(), plan.duration.as_secs_f64());
        let input = self.input.as_ref().map(|input| format!("--input '{}'", input.replace('\'', r"'\''")));
        let options = [
            Some(format!("rcrt bench --tool {}", self.tool)),
            input,
            Some(format!("--in-flight {}", plan.in_flight())),
            self.rate.map(|rate| format!("--rate {rate}")),
            Some(format!("--warm-up {warm_up} --duration {duration} --method {}", self.method_name())),
        ];
        options.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn parameters(&self, plan: &Plan) -> Value {
        json!({
            "tool": self.tool,
            "method": self.method_name(),
            "in_flight": plan.in_flight(),
            "rate": self.rate,
            "warm_up_s": plan.warm_up.as_secs_f64(),
            "duration_s": plan.duration.as_secs_f64(),
        })
    }

    fn method_name(&self) -> &'static str {
        match self.method {
            Method::Events => "events",
            Method::Invoke => "invoke",
        }
    }
}

/// The error if the first call fails: such a tool is not measured.
fn first_call_failed(reason: &str, output: Output) -> anyhow::Error {
    let message = format!("nothing was measured, because the first call failed: {reason}");
    if !output.is_json() {
        eprintln!("rcrt: {message}");
    }
    Failure::ToolError(message).into()
}

/// Checks that the file can be written, without leaving a new file.
fn check_writable(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return OpenOptions::new().append(true).open(path).map(drop);
    }
    OpenOptions::new().create_new(true).write(true).open(path)?;
    std::fs::remove_file(path)
}

/// The input of the tool's first example, or `{}` if it has none.
fn first_example(record: &Breadcrumb) -> Value {
    let example = tool_lookup::read(record).ok().and_then(|tool| tool.examples.into_iter().next());
    example.map_or_else(|| json!({}), |example| example.input)
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds, such as 2.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "must be 0 or more seconds".to_owned())
}
