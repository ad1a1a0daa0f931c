//! The default, a clean call in a process that calls share, against the two other kinds of
//! isolation: at rest, with 32 calls in flight, and its memory over thousands of evaluations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use rcrt_breadcrumb::Isolation;
use rcrt_load::{Histogram, Row};
use rcrt_sandbox::{Sandbox, SandboxOptions};
use serde_json::json;

use super::sandboxed::{self, ADD};
use crate::instance::{Answers, ToolCalls, adding, proportional_bytes, tree};
use crate::rounds::Rounds;
use crate::run::{Run, millis};

const SECTION: &str = "clean calls in one process";
const KINDS: [(&str, Isolation); 3] =
    [("with reuse", Isolation::Tool), ("by default", Isolation::Call), ("a process for each call", Isolation::Process)];
const IN_FLIGHT: usize = 32;
const ROUNDS_AT_REST: usize = 300;
const PAUSE: Duration = Duration::from_millis(30);
const ABOVE_REUSE_MS: f64 = 0.3;
const SHARE_OF_REUSE: f64 = 0.8;
const TIMES_A_PROCESS_EACH: f64 = 5.0;
/// One process runs no more than this many.
const EVALUATIONS: usize = 10_000;
const SETTLED: usize = 500;
const MAX_GROWTH_MB: f64 = 8.0;
const MB: f64 = 1e6;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    through_the_api(run).await?;
    memory(run).await
}

async fn through_the_api(run: &mut Run) -> anyhow::Result<()> {
    let instance = run.idle_instance(&run.folder("clean-calls"), &[]).await?;
    let client = instance.client();
    let answers = Answers::follow(&instance).await?;
    let mut kinds = Vec::new();
    for (number, (what, isolation)) in KINDS.into_iter().enumerate() {
        let tool = adding(&format!("bench-clean-{number}"), isolation).add(&client).await?;
        let input = |number| json!({"a": number, "b": 2});
        let calls = Arc::new(ToolCalls { answers: answers.clone(), tool, input });
        kinds.push((what, calls, Histogram::new(), Rounds::default()));
    }
    let warm_up = 10;
    for round in 0..run.times(ROUNDS_AT_REST) + warm_up {
        for (_, calls, latency, _) in &mut kinds {
            tokio::time::sleep(PAUSE).await;
            let begun = Instant::now();
            answers.call(&calls.tool, json!({"a": 1, "b": 2})).await.map_err(anyhow::Error::msg)?;
            if round >= warm_up {
                latency.record(begun.elapsed());
            }
        }
    }
    for _ in 0..run.times(3).max(1) {
        for (_, calls, _, rounds) in &mut kinds {
            let measured = run.closed(calls.clone(), IN_FLIGHT, Duration::from_secs(1), run.seconds(8)).await;
            rounds.add(&measured);
        }
    }
    instance.stop().await?;
    let at_rest: Vec<f64> = kinds.iter().map(|(_, _, latency, _)| millis(latency.quantile(0.5))).collect();
    let rates: Vec<f64> = kinds.iter().map(|(.., rounds)| rounds.per_second()).collect();
    for ((what, ..), p50) in kinds.iter().zip(&at_rest) {
        run.push(Row::new(SECTION, format!("at rest, {what}: p50"), *p50, "ms").ratio(at_rest[0], "reuse"));
    }
    let above = at_rest[1] - at_rest[0];
    run.push(
        Row::new(SECTION, "at rest, the default over reuse", above, "ms")
            .target(format!("≤ {ABOVE_REUSE_MS} ms"), above <= ABOVE_REUSE_MS),
    );
    for ((what, _, _, rounds), rate) in kinds.iter().zip(&rates) {
        let row = Row::new(SECTION, format!("{IN_FLIGHT} in flight, {what}"), *rate, "calls/s");
        run.push(rounds.with_failures(row.ratio(rates[0], "reuse")));
    }
    let (of_reuse, times) = (rates[1] / rates[0].max(1.0), rates[1] / rates[2].max(1.0));
    run.push(
        Row::new(SECTION, format!("{IN_FLIGHT} in flight, the default, of the rate with reuse"), of_reuse, "×")
            .target(format!("≥ {SHARE_OF_REUSE} ×"), of_reuse >= SHARE_OF_REUSE),
    );
    run.push(
        Row::new(SECTION, format!("{IN_FLIGHT} in flight, the default, of the rate of a process each"), times, "×")
            .target(format!("≥ {TIMES_A_PROCESS_EACH} ×"), times >= TIMES_A_PROCESS_EACH),
    );
    for (what, _, _, rounds) in &kinds {
        for (share, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let value = millis(rounds.quantile(quantile));
            run.push(Row::new(SECTION, format!("{IN_FLIGHT} in flight, {what}: latency {share}"), value, "ms"));
        }
    }
    Ok(())
}

/// What one process holds after a few and after thousands of evaluations, in the sandbox alone.
async fn memory(run: &mut Run) -> anyhow::Result<()> {
    let options = SandboxOptions { spares: 0, ..sandboxed::options(1)? };
    let sandbox = Sandbox::start(options).await?;
    let call = sandboxed::invocation(ADD, Isolation::Call);
    let repeat = async |times: usize| {
        for _ in 0..times {
            sandboxed::run(&sandbox, call.clone()).await.map_err(anyhow::Error::msg)?;
        }
        anyhow::Ok(())
    };
    let evaluations = run.times(EVALUATIONS - SETTLED - 1);
    repeat(SETTLED).await?;
    let before = worker_bytes()?;
    let begun = Instant::now();
    repeat(evaluations).await?;
    let each = begun.elapsed() / u32::try_from(evaluations)?.max(1);
    let after = worker_bytes()?;
    sandbox.close().await;
    let growth = (after - before) / MB;
    run.push(
        Row::new(SECTION, format!("growth of the worker over {evaluations} evaluations"), growth, "MB")
            .target(format!("≤ {MAX_GROWTH_MB} MB"), growth <= MAX_GROWTH_MB)
            .note(format!("proportional memory (PSS), {:.1} MB at first", before / MB)),
    );
    run.push(Row::new(SECTION, "a call in the sandbox, one after the other: mean", millis(each), "ms"));
    Ok(())
}

/// Proportional memory of all workers.
fn worker_bytes() -> anyhow::Result<f64> {
    let is_worker = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        sandboxed::is_worker(&String::from_utf8_lossy(&line))
    };
    let workers: Vec<u32> = tree(std::process::id())?.into_iter().filter(is_worker).collect();
    if workers.is_empty() {
        bail!("no sandbox worker is running");
    }
    Ok(proportional_bytes(&workers)? as f64)
}
