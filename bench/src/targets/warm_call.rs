//! In the sandbox alone: a warm call with reuse, measured in the runner, from sending it to its
//! outcome.

use std::time::Instant;

use rcrt_breadcrumb::Isolation;
use rcrt_load::{Histogram, Row};

use super::sandboxed::{self, ADD};
use crate::floors;
use crate::instance::{tree, wake_ups};
use crate::run::{Run, micros};

const SECTION: &str = "warm call in the sandbox";
const CALLS: usize = 5_000;
const TARGET_US: f64 = 60.0;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = sandboxed::start(2).await?;
    let engine = sandbox.report();
    run.report.versions.insert("V8".into(), engine.engine_version.clone());
    let call = sandboxed::invocation(ADD, Isolation::Tool);
    let mut latency = Histogram::new();
    let mut woken_before = 0;
    for number in 0..run.times(CALLS) {
        let call = call.clone();
        if number == run.times(CALLS) / 5 {
            woken_before = workers_wake_ups()?;
        }
        let begun = Instant::now();
        sandboxed::run(&sandbox, call).await.map_err(anyhow::Error::msg)?;
        // Not the first calls, which run before the engine has optimised anything.
        if number >= run.times(CALLS) / 5 {
            latency.record(begun.elapsed());
        }
    }
    let woken = workers_wake_ups()?.saturating_sub(woken_before) as f64 / latency.len().max(1) as f64;
    sandbox.close().await;
    let bare = floors::engine_at_low_load(run.seconds(3)).await;
    let p50 = micros(latency.quantile(0.5));
    let mut row = Row::new(SECTION, "warm call with reuse, p50", p50, "µs")
        .target(format!("≤ {TARGET_US} µs"), p50 <= TARGET_US)
        .note("from the runner's side: two frames, both ways through the socket, and the supervision");
    if let Ok(bare) = &bare {
        row = row.ratio(bare.warm_call_us, "the same call in a bare engine");
    }
    run.push(row);
    run.push(Row::new(SECTION, "warm call with reuse, p99", micros(latency.quantile(0.99)), "µs"));
    run.push(
        Row::new(SECTION, "threads of the worker that a warm call wakes", woken, "wake-ups")
            .note("all threads of its processes, those that only meter included"),
    );
    run.push(match bare {
        Ok(bare) => Row::new(SECTION, "floor: warm call in a bare engine, p50", bare.warm_call_us, "µs"),
        Err(why) => Row::missing(SECTION, "floor: warm call in a bare engine, p50", format!("{why:#}")),
    });
    Ok(())
}

/// Of all processes of the sandbox.
fn workers_wake_ups() -> anyhow::Result<u64> {
    let own = std::process::id();
    let workers: Vec<u32> = tree(own)?.into_iter().filter(|id| *id != own).collect();
    Ok(wake_ups(&workers))
}
