//! With a million records and ten thousand tools in the store: everything within 1.3 times of an
//! empty one. Two instances, measured in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use rcrt_breadcrumb::Isolation;
use rcrt_load::{Histogram, Row};
use serde_json::json;

use crate::instance::{Answers, Filling, QUIET, ToolCalls, adding, fill, proportional_bytes, tree};
use crate::rounds::{Rounds, median};
use crate::run::{Run, millis};

const SECTION: &str = "1,000,000 breadcrumbs and 10,000 tools";
const FULL: Filling = Filling { records: 1_000_000, tools: 10_000 };
const SMOKE: Filling = Filling { records: 20_000, tools: 200 };
const MOST: f64 = 1.3;
const IN_FLIGHT: usize = 32;
const KINDS: [&str; 2] = ["by default", "with reuse"];

/// The measurements of one instance.
#[derive(Default)]
struct Measurements {
    starts: Vec<f64>,
    /// By default, and with reuse.
    at_low_load: [Rounds; 2],
    loaded: [Rounds; 2],
    first_calls: Histogram,
    /// Reads of one tool's entry in the catalog.
    entries: Histogram,
    memory_mb: f64,
}

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let (empty, full) = (run.folder("empty"), run.folder("full"));
    for data in [&empty, &full] {
        run.instance(data, QUIET).await?.stop().await?;
    }
    let filling = if run.is_quick { SMOKE } else { FULL };
    let begun = Instant::now();
    fill(&full, filling).await?;
    let filled = begun.elapsed();

    let (mut of_empty, mut of_full) = (Measurements::default(), Measurements::default());
    for _ in 0..run.times(3) {
        for (data, found) in [(&empty, &mut of_empty), (&full, &mut of_full)] {
            let instance = run.instance(data, QUIET).await?;
            found.starts.push(instance.took.as_secs_f64());
            instance.stop().await?;
        }
    }
    let (mut instances, mut calls) = (Vec::new(), Vec::new());
    for data in [&empty, &full] {
        let instance = run.instance(data, QUIET).await?;
        let answers = Answers::follow(&instance).await?;
        // When this tool is offered, the runner has read all older tools.
        let input = |number| json!({"a": number, "b": 2});
        let mut both = Vec::new();
        for (name, isolation) in [("bench-default", Isolation::Call), ("bench-reuse", Isolation::Tool)] {
            let tool = adding(name, isolation).add(&instance.client()).await?;
            both.push(Arc::new(ToolCalls { answers: answers.clone(), tool, input }));
        }
        calls.push(both);
        instances.push(instance);
    }
    for instance in &instances {
        // Each new tool is validated once, at the same time as the calls.
        run.rest(instance).await?;
    }
    for calls in calls.iter().flatten() {
        run.closed(calls.clone(), IN_FLIGHT, Duration::ZERO, run.seconds(4)).await;
    }
    for round in 0..run.times(3).max(1) {
        for ((instance, calls), found) in instances.iter().zip(&calls).zip([&mut of_empty, &mut of_full]) {
            let client = instance.client();
            for ((calls, at_low_load), loaded) in calls.iter().zip(&mut found.at_low_load).zip(&mut found.loaded) {
                at_low_load.add(&run.at_low_load(calls.clone(), run.seconds(10)).await);
                loaded.add(&run.closed(calls.clone(), IN_FLIGHT, Duration::from_secs(1), run.seconds(8)).await);
            }
            for number in 0..run.times(10) {
                let name = format!("bench-first-{round}-{number}");
                let tool = adding(&name, Isolation::Call).add(&client).await?;
                let begun = Instant::now();
                calls[0].answers.call(&tool, json!({"a": 1, "b": 2})).await.map_err(anyhow::Error::msg)?;
                found.first_calls.record(begun.elapsed());
                let begun = Instant::now();
                client.tool(&tool).await?;
                found.entries.record(begun.elapsed());
            }
        }
    }
    for (instance, found) in instances.iter().zip([&mut of_empty, &mut of_full]) {
        found.memory_mb = proportional_bytes(&tree(instance.process_id())?).context("memory")? as f64 / 1e6;
    }
    for instance in instances {
        instance.stop().await?;
    }

    let mut compare = |name: &str, unit: &str, empty: f64, full: f64, is_judged: bool, more_is_better: bool| {
        let mut row = Row::new(SECTION, name, full, unit).ratio(empty, "the empty store");
        if is_judged {
            let holds = if more_is_better { full * MOST >= empty } else { full <= MOST * empty };
            row = row.target(format!("within {MOST} × of the empty store"), holds);
        }
        run.push(row);
    };
    let (empty, full) = (of_empty, of_full);
    for (name, (of_empty, of_full)) in KINDS.iter().zip(empty.loaded.iter().zip(&full.loaded)) {
        let (of_empty, of_full) = (of_empty.per_second(), of_full.per_second());
        compare(&format!("calls per second, 32 in flight, {name}"), "calls/s", of_empty, of_full, true, true);
    }
    for (kind, (of_empty, of_full)) in KINDS.iter().zip(empty.at_low_load.iter().zip(&full.at_low_load)) {
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let (of_empty, of_full) = (millis(of_empty.quantile(quantile)), millis(of_full.quantile(quantile)));
            compare(&format!("latency at low load, {kind}, {name}"), "ms", of_empty, of_full, true, false);
        }
    }
    let entries = (millis(empty.entries.quantile(0.5)), millis(full.entries.quantile(0.5)));
    compare("catalog entry of a tool, p50", "ms", entries.0, entries.1, false, false);
    let first_calls = (millis(empty.first_calls.quantile(0.5)), millis(full.first_calls.quantile(0.5)));
    compare("first call of a tool, p50", "ms", first_calls.0, first_calls.1, true, false);
    compare("start of an installed system", "s", median(empty.starts), median(full.starts), true, false);
    compare("memory, Postgres included", "MB", empty.memory_mb, full.memory_mb, false, false);
    run.push(Row::new(SECTION, "filling the store", filled.as_secs_f64(), "s").note(format!(
        "{} records, {} tools, by SQL; not part of a target. Both systems run with --embeddings off",
        filling.records, filling.tools
    )));
    Ok(())
}
