//! Durable calls per second, 32 in flight: against what the disk takes of single inserts, and against durable peers.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::Isolation;
use load::Row;
use load::plot::Bars;
use serde_json::json;

use crate::floors::PgBench;
use crate::house::{Answers, ToolCalls, adding};
use crate::rounds::{Rounds, median};
use crate::run::{Run, millis};

const SECTION: &str = "durable calls per second";
const IN_FLIGHT: usize = 32;
/// A call writes durably twice, request and response; 0.6 of that bound.
const SHARE: f64 = 0.3;
const TIMES_A_PEER: f64 = 2.0;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let house = run.rested_house(&run.folder("throughput"), &[]).await?;
    let client = house.client();
    let answers = Answers::follow(&house).await?;
    let mut calls = Vec::new();
    for (name, isolation) in [("bench-reuse", Isolation::Tool), ("bench-fresh", Isolation::Call)] {
        let tool = adding(name, isolation).add(&client).await?;
        let input = |number| json!({"a": number, "b": 2});
        calls.push(Arc::new(ToolCalls { answers: answers.clone(), tool, input }));
    }
    for calls in &calls {
        run.closed(calls.clone(), IN_FLIGHT, Duration::ZERO, run.seconds(6)).await;
    }
    let floor = PgBench::prepare(&house.database(), run.place()).await?;
    let mut inserts = Vec::new();
    let (mut reuse, mut fresh) = (Rounds::default(), Rounds::default());
    for _ in 0..run.times(3).max(1) {
        inserts.push(floor.insert(IN_FLIGHT as u32, run.seconds(6)).await?.per_second);
        for (calls, rounds) in calls.iter().zip([&mut reuse, &mut fresh]) {
            rounds.add(&run.closed(calls.clone(), IN_FLIGHT, Duration::from_secs(1), run.seconds(8)).await);
        }
    }
    let inserts = median(inserts);
    let row_bytes = floor.row_bytes;
    house.stop().await?;
    run.push(
        Row::new(SECTION, "floor: pgbench, 32 clients, one insert each", inserts, "inserts/s")
            .note(format!("rows of {row_bytes} bytes, as a request's; fsync and synchronous_commit on")),
    );
    let name = "RCRT, warm tool with reuse";
    let row = Row::new(SECTION, name, reuse.per_second(), "calls/s").ratio(inserts, "pgbench, 32 clients");
    run.push(reuse.told(row.target(format!("≥ {SHARE} × pgbench, 32 clients"), reuse.per_second() >= SHARE * inserts)));
    let row = Row::new(SECTION, "RCRT, warm tool, a fresh isolate for each call", fresh.per_second(), "calls/s");
    run.push(fresh.told(row.ratio(inserts, "pgbench, 32 clients")));
    for (name, rounds) in [("with reuse", &reuse), ("fresh", &fresh)] {
        for (share, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let value = millis(rounds.quantile(quantile));
            run.push(Row::new(SECTION, format!("RCRT, {name}: latency {share} at 32 in flight"), value, "ms"));
        }
    }
    let mut bars = Bars::new("Calls per second, 32 in flight", "calls/s")
        .bar("RCRT, with reuse", reuse.per_second())
        .bar("RCRT, a fresh isolate each", fresh.per_second());
    for peer in &run.peers {
        let kind = if peer.is_durable { "durable" } else { "not durable" };
        bars = bars.bar(format!("{} ({kind})", peer.name), peer.per_second);
    }
    run.pictures.push(("throughput".into(), bars.svg()?));
    let best = run.peers.iter().filter(|peer| peer.is_durable).max_by(|a, b| a.per_second.total_cmp(&b.per_second));
    let row = match best {
        None => Row::missing(SECTION, "against the best durable peer", "no durable peer was measured in this run"),
        Some(best) => Row::new(SECTION, "against the best durable peer", reuse.per_second(), "calls/s")
            .ratio(best.per_second, best.name.clone())
            .target(format!("≥ {TIMES_A_PEER} ×"), reuse.per_second() >= TIMES_A_PEER * best.per_second),
    };
    run.push(row);
    Ok(())
}
