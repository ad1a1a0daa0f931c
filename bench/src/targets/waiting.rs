//! A thousand calls that wait on slow HTTP at once: the memory of the instance then, and the
//! latency of other calls.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rcrt_breadcrumb::Isolation;
use rcrt_load::Row;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::instance::{Answers, Instance, SlowServer, Tool, ToolCalls, adding, proportional_bytes, tree};
use crate::rounds::Rounds;
use crate::run::{Run, millis};

const SECTION: &str = "1,000 calls waiting on slow HTTP";
const CALLS: usize = 1_000;
const MOST_MB: f64 = 1_000.0;
const TAIL: f64 = 2.0;
/// How long the last of them can take to reach the slow server.
const PATIENCE: Duration = Duration::from_secs(40);
const TIMEOUT_MS: u64 = 300_000;
const TOOL: &str = "bench-slow";

/// Which kind of tool waits.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// An http tool, which only describes a request. The runner sends it, and no isolate is held.
    Http,
    /// Code that awaits `fetch`, each call in its own isolate. By default as many run as can
    /// compute on the machine. Here all have a slot.
    Code,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "http tools",
            Self::Code => "code that awaits fetch",
        }
    }

    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Http => &[],
            Self::Code => &["--max-calls", "1100", "--max-calls-per-tool", "1000"],
        }
    }

    fn note(self) -> &'static str {
        match self {
            Self::Http => "",
            Self::Code => "; with --max-calls 1100 --max-calls-per-tool 1000, each in its own isolate and process",
        }
    }

    fn tool(self, slow: &SlowServer) -> Tool {
        match self {
            Self::Http => Tool::get(TOOL, &slow.url(), &slow.host(), TIMEOUT_MS),
            Self::Code => Tool::fetching(TOOL, &slow.url(), &slow.host(), TIMEOUT_MS),
        }
    }
}

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    for kind in [Kind::Http, Kind::Code] {
        measure(run, kind).await?;
    }
    Ok(())
}

async fn measure(run: &mut Run, kind: Kind) -> anyhow::Result<()> {
    let slow = SlowServer::start().await?;
    let allowed = format!("{TOOL}={}", slow.host());
    let settings: Vec<&str> =
        ["--allow-private-host", &allowed].into_iter().chain(kind.settings().iter().copied()).collect();
    let instance = run.idle_instance(&run.folder(&format!("waiting-{kind:?}")), &settings).await?;
    let client = instance.client();
    let answers = Answers::follow(&instance).await?;
    let other = adding("bench-default", Isolation::Call).add(&client).await?;
    let slow_tool = kind.tool(&slow).add(&client).await?;
    let other =
        Arc::new(ToolCalls { answers: answers.clone(), tool: other, input: |number| json!({"a": number, "b": 2}) });
    run.at_low_load(other.clone(), run.seconds(3)).await;
    let (mut idle, mut beside) = (Rounds::default(), Rounds::default());
    idle.add(&run.at_low_load(other.clone(), run.seconds(15)).await);
    let memory_before = memory_mb(&instance)?;

    let calls = run.times(CALLS);
    let mut waiting = JoinSet::new();
    for _ in 0..calls {
        let (answers, tool) = (answers.clone(), slow_tool.clone());
        waiting.spawn(async move { answers.call(&tool, json!({})).await });
    }
    let begun = Instant::now();
    let held = slow.wait_for(calls, PATIENCE).await;
    let took = begun.elapsed();
    beside.add(&run.at_low_load(other.clone(), run.seconds(15)).await);
    let memory = memory_mb(&instance)?;
    let still_held = slow.held();
    slow.lift_cpu_limit();
    let mut failed = 0_usize;
    while let Some(answered) = waiting.join_next().await {
        let context = answered.context("a call's task")?;
        let is_good = context.is_ok_and(|context| context.get("status").is_some_and(|status| status == "success"));
        failed += usize::from(!is_good);
    }
    run.at_low_load(other.clone(), Duration::from_secs(2)).await;
    idle.add(&run.at_low_load(other, run.seconds(15)).await);
    instance.stop().await?;

    let kind_name = kind.name();
    run.push(
        Row::new(SECTION, format!("{kind_name}: calls that reached the slow server at once"), held as f64, "calls")
            .target(format!("all {calls}"), held == calls && failed == 0)
            .note(format!(
                "{} ms until the last arrived; {still_held} still waiting after the measurement beside \
                           them; {failed} failed when they were answered{}",
                took.as_millis(),
                kind.note()
            )),
    );
    run.push(Row::new(SECTION, format!("{kind_name}: memory of the system before"), memory_before, "MB"));
    run.push(
        Row::new(SECTION, format!("{kind_name}: memory of the system meanwhile"), memory, "MB")
            .target(format!("< {MOST_MB} MB"), memory < MOST_MB)
            .note("proportional memory (PSS) of all its processes, Postgres included"),
    );
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let (alone, with) = (millis(idle.quantile(quantile)), millis(beside.quantile(quantile)));
        run.push(Row::new(SECTION, format!("{kind_name}: other calls, alone: {name}"), alone, "ms"));
        let row = Row::new(SECTION, format!("{kind_name}: other calls, beside them: {name}"), with, "ms");
        let mut row = row.ratio(alone, "alone");
        if quantile > 0.9 {
            row = row.target(format!("≤ {TAIL} × alone"), with <= TAIL * alone);
        }
        run.push(beside.with_failures(row));
    }
    Ok(())
}

fn memory_mb(instance: &Instance) -> anyhow::Result<f64> {
    Ok(proportional_bytes(&tree(instance.process_id())?)? as f64 / 1e6)
}
