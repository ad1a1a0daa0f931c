//! A process with a fresh isolate for every call (`"isolation": "process"`): at low load against a
//! call with reuse; under load against a bare engine that makes isolates and runs the same tool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rcrt_breadcrumb::Isolation;
use rcrt_load::{Histogram, Row};
use serde_json::json;

use super::sandboxed::{self, ADD, SandboxCalls};
use crate::floors;
use crate::instance::{Answers, ToolCalls, adding};
use crate::rounds::{Rounds, median};
use crate::run::{Run, micros, millis};

const SECTION: &str = "a fresh isolate for every call";
const PAIRS: usize = 300;
const PAUSE: Duration = Duration::from_millis(30);
const ABOVE_REUSE_MS: f64 = 1.0;
const SHARE_OF_BARE: f64 = 0.8;
/// Calls in flight for each processor: enough that a worker is always busy.
const IN_FLIGHT: usize = 4;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let through_the_api = through_the_api(run).await?;
    under_load(run, &through_the_api).await
}

/// At low load with and without reuse, in turns. Returns the results of fresh isolates under load.
async fn through_the_api(run: &mut Run) -> anyhow::Result<Rounds> {
    let instance = run.idle_instance(&run.folder("fresh"), &[]).await?;
    let client = instance.client();
    let answers = Answers::follow(&instance).await?;
    let mut tools = Vec::new();
    for (name, isolation) in [("bench-fresh", Isolation::Process), ("bench-reuse", Isolation::Tool)] {
        tools.push((adding(name, isolation).add(&client).await?, Histogram::new()));
    }
    let warm_up = 10;
    for pair in 0..run.times(PAIRS) + warm_up {
        for (tool, latency) in &mut tools {
            tokio::time::sleep(PAUSE).await;
            let begun = Instant::now();
            answers.call(tool, json!({"a": 1, "b": 2})).await.map_err(anyhow::Error::msg)?;
            if pair >= warm_up {
                latency.record(begun.elapsed());
            }
        }
    }
    let input = |number| json!({"a": number, "b": 2});
    let calls = Arc::new(ToolCalls { answers: answers.clone(), tool: tools[0].0.clone(), input });
    let in_flight = processors() * IN_FLIGHT;
    run.closed(calls.clone(), in_flight, Duration::ZERO, run.seconds(3)).await;
    let mut loaded = Rounds::default();
    for _ in 0..run.times(3).max(1) {
        loaded.add(&run.closed(calls.clone(), in_flight, Duration::from_secs(1), run.seconds(6)).await);
    }
    instance.stop().await?;
    let middles: Vec<f64> = tools.iter().map(|(_, latency)| millis(latency.quantile(0.5))).collect();
    let (fresh, reuse) = (middles[0], middles[1]);
    run.push(Row::new(SECTION, "at low load, with reuse: p50", reuse, "ms"));
    run.push(Row::new(SECTION, "at low load, fresh: p50", fresh, "ms").ratio(reuse, "reuse"));
    let (above, target) = (fresh - reuse, format!("≤ {ABOVE_REUSE_MS} ms"));
    run.push(Row::new(SECTION, "at low load, fresh over reuse", above, "ms").target(target, above <= ABOVE_REUSE_MS));
    Ok(loaded)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// In the sandbox alone, without a database.
async fn under_load(run: &mut Run, through_the_api: &Rounds) -> anyhow::Result<()> {
    let processors = processors();
    let sandbox = sandboxed::start(processors * IN_FLIGHT).await?;
    let invocation = sandboxed::invocation(ADD, Isolation::Process);
    let calls = Arc::new(SandboxCalls { sandbox: sandbox.clone(), invocation });
    run.closed(calls.clone(), processors * IN_FLIGHT, Duration::ZERO, run.seconds(3)).await;
    let (mut ours, mut bare) = (Rounds::default(), Vec::new());
    for _ in 0..run.times(3).max(1) {
        bare.push(floors::engines_side_by_side(processors, run.seconds(5)).await?);
        ours.add(&run.closed(calls.clone(), processors * IN_FLIGHT, Duration::from_secs(1), run.seconds(6)).await);
    }
    sandbox.close().await;
    let alone = floors::engine_at_low_load(run.seconds(4)).await?;
    let bare = median(bare);
    for (name, value) in [
        ("floor: a bare engine makes an isolate", alone.made_us / 1e3),
        ("floor: a bare engine loads the tool", alone.loaded_us / 1e3),
        ("floor: a bare engine's first call", alone.called_us / 1e3),
        ("floor: all three", millis(alone.whole())),
    ] {
        run.push(Row::new(SECTION, name, value, "ms"));
    }
    let name = format!("floor: bare engines make and run, {processors} processes");
    run.push(Row::new(SECTION, name, bare, "isolates/s"));
    let row = Row::new(SECTION, "under load: calls in the sandbox", ours.per_second(), "calls/s")
        .ratio(bare, "bare engines")
        .target(format!("≥ {SHARE_OF_BARE} × bare engines"), ours.per_second() >= SHARE_OF_BARE * bare);
    run.push(ours.with_failures(row));
    let row = Row::new(SECTION, "under load: calls through the API", through_the_api.per_second(), "calls/s");
    let row = row.ratio(bare, "bare engines").note("each with its two durable records; as many in flight");
    run.push(through_the_api.with_failures(row));
    run.push(Row::new(SECTION, "under load: latency p50 in the sandbox", micros(ours.quantile(0.5)) / 1e3, "ms"));
    Ok(())
}
