//! The first call of a tool that nobody has called: load, compile, a fresh isolate, run.

use std::time::{Duration, Instant};

use breadcrumb::Isolation;
use load::{Histogram, Row};
use serde_json::json;

use super::sandboxed::{self, ADD};
use crate::house::{Answers, adding};
use crate::run::{Run, millis};

const SECTION: &str = "a tool never seen before";
const TOOLS: usize = 40;
const ABOVE_WARM_MS: f64 = 3.0;
const FASTER_THAN_DENO: f64 = 8.0;
/// Long enough for the system to come to rest.
const PAUSE: Duration = Duration::from_millis(60);

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let house = run.rested_house(&run.folder("unseen"), &[]).await?;
    let client = house.client();
    let answers = Answers::follow(&house).await?;
    let warm_tool = adding("bench-reuse", Isolation::Tool).add(&client).await?;
    let (mut first, mut warm) = (Histogram::new(), Histogram::new());
    for _ in 0..run.times(20) {
        timed(&answers, &warm_tool).await?;
    }
    for number in 0..run.times(TOOLS) {
        let unseen = adding(&format!("bench-unseen-{number}"), Isolation::Call).add(&client).await?;
        warm.record(timed(&answers, &warm_tool).await?);
        first.record(timed(&answers, &unseen).await?);
    }
    house.stop().await?;
    let (first, warm) = (first.quantile(0.5), warm.quantile(0.5));
    let above = millis(first) - millis(warm);
    run.push(Row::new(SECTION, "warm call with reuse, p50", millis(warm), "ms"));
    run.push(Row::new(SECTION, "first call of a tool, p50", millis(first), "ms").ratio(millis(warm), "a warm call"));
    let target = format!("≤ {ABOVE_WARM_MS} ms");
    run.push(Row::new(SECTION, "first call over a warm one", above, "ms").target(target, above <= ABOVE_WARM_MS));
    let row = match run.peer("deno") {
        None => Row::missing(SECTION, "against a deno spawn", "deno was not measured in this run"),
        Some(deno) => {
            let times = millis(deno.median) / millis(first);
            Row::new(SECTION, "faster than a deno spawn by", times, "×")
                .target(format!("≥ {FASTER_THAN_DENO} ×"), times >= FASTER_THAN_DENO)
        }
    };
    run.push(row);
    in_the_sandbox(run).await
}

/// What a spawned Deno does, without what a store and its events add: load, compile, a fresh isolate, run.
async fn in_the_sandbox(run: &mut Run) -> anyhow::Result<()> {
    let sandbox = sandboxed::start(2).await?;
    let mut first = Histogram::new();
    for number in 0..run.times(TOOLS) {
        let call = sandboxed::invocation(&format!("{ADD}\n// {number}"), Isolation::Call);
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        sandboxed::run(&sandbox, call).await.map_err(anyhow::Error::msg)?;
        first.record(begun.elapsed());
    }
    sandbox.close().await;
    let first = millis(first.quantile(0.5));
    run.push(Row::new(SECTION, "in the sandbox alone: first call of a tool, p50", first, "ms"));
    if let Some(deno) = run.peer("deno") {
        let times = millis(deno.median) / first;
        run.push(
            Row::new(SECTION, "in the sandbox alone: faster than a deno spawn by", times, "×")
                .target(format!("≥ {FASTER_THAN_DENO} ×"), times >= FASTER_THAN_DENO),
        );
    }
    Ok(())
}

async fn timed(answers: &Answers, tool: &str) -> anyhow::Result<Duration> {
    tokio::time::sleep(PAUSE).await;
    let begun = Instant::now();
    answers.call(tool, json!({"a": 1, "b": 2})).await.map_err(anyhow::Error::msg)?;
    Ok(begun.elapsed())
}
