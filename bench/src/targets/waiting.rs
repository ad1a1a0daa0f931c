//! A thousand calls that wait on slow HTTP at once: what the house takes of memory then, and what becomes of other calls.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use breadcrumb::Isolation;
use load::Row;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::house::{Answers, House, SlowServer, Tool, ToolCalls, adding, proportional_bytes, tree};
use crate::rounds::Rounds;
use crate::run::{Run, millis};

const SECTION: &str = "1,000 calls waiting on slow HTTP";
const CALLS: usize = 1_000;
const MOST_MB: f64 = 1_000.0;
const TAIL: f64 = 2.0;
/// How long the last of them may take to reach the slow server.
const PATIENCE: Duration = Duration::from_secs(40);
const TIMEOUT_MS: u64 = 300_000;
const TOOL: &str = "bench-slow";

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let slow = SlowServer::start().await?;
    let allowed = format!("{TOOL}={}", slow.host());
    let house = run.rested_house(&run.folder("waiting"), &["--allow-private-host", &allowed]).await?;
    let client = house.client();
    let answers = Answers::follow(&house).await?;
    let other = adding("bench-fresh", Isolation::Call).add(&client).await?;
    let slow_tool = Tool::get(TOOL, &slow.url(), &slow.host(), TIMEOUT_MS).add(&client).await?;
    let other =
        Arc::new(ToolCalls { answers: answers.clone(), tool: other, input: |number| json!({"a": number, "b": 2}) });
    run.at_rest(other.clone(), run.seconds(3)).await;
    let (mut idle, mut beside) = (Rounds::default(), Rounds::default());
    idle.add(&run.at_rest(other.clone(), run.seconds(15)).await);
    let memory_before = memory_mb(&house)?;

    let calls = run.times(CALLS);
    let mut waiting = JoinSet::new();
    for _ in 0..calls {
        let (answers, tool) = (answers.clone(), slow_tool.clone());
        waiting.spawn(async move { answers.call(&tool, json!({})).await });
    }
    let begun = Instant::now();
    let held = slow.wait_for(calls, PATIENCE).await;
    let took = begun.elapsed();
    beside.add(&run.at_rest(other.clone(), run.seconds(15)).await);
    let memory = memory_mb(&house)?;
    let still_held = slow.held();
    slow.let_go();
    let mut failed = 0_usize;
    while let Some(answered) = waiting.join_next().await {
        let context = answered.context("a call's task")?;
        let is_good = context.is_ok_and(|context| context.get("status").is_some_and(|status| status == "success"));
        failed += usize::from(!is_good);
    }
    run.at_rest(other.clone(), Duration::from_secs(2)).await;
    idle.add(&run.at_rest(other, run.seconds(15)).await);
    house.stop().await?;

    run.push(
        Row::new(SECTION, "calls that reached the slow server at once", held as f64, "calls")
            .target(format!("all {calls}"), held == calls && failed == 0)
            .note(format!(
                "{} ms until the last was there; {still_held} still there after the measurement beside \
                           them; {failed} were not answered well when it let go",
                took.as_millis()
            )),
    );
    run.push(Row::new(SECTION, "memory of the house before, Postgres included", memory_before, "MB"));
    run.push(
        Row::new(SECTION, "memory of the house meanwhile, Postgres included", memory, "MB")
            .target(format!("< {MOST_MB} MB"), memory < MOST_MB)
            .note("proportional memory (PSS) of all its processes"),
    );
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let (alone, with) = (millis(idle.quantile(quantile)), millis(beside.quantile(quantile)));
        run.push(Row::new(SECTION, format!("other calls, alone: {name}"), alone, "ms"));
        let mut row = Row::new(SECTION, format!("other calls, beside them: {name}"), with, "ms").ratio(alone, "alone");
        if quantile > 0.9 {
            row = row.target(format!("≤ {TAIL} × alone"), with <= TAIL * alone);
        }
        run.push(beside.told(row));
    }
    Ok(())
}

fn memory_mb(house: &House) -> anyhow::Result<f64> {
    Ok(proportional_bytes(&tree(house.process_id())?)? as f64 / 1e6)
}
