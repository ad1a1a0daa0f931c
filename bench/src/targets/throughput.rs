//! Durable calls per second, 32 in flight, against what the disk takes of single inserts; and what a call takes of the processors.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::Isolation;
use load::Row;
use serde_json::json;

use crate::floors::PgBench;
use crate::house::{Answers, House, Spending, ToolCalls, adding};
use crate::rounds::{Rounds, median};
use crate::run::{Run, millis};

const SECTION: &str = "durable calls per second";
const IN_FLIGHT: usize = 32;
/// A call writes durably twice, request and response; 0.6 of that bound.
const SHARE: f64 = 0.3;

/// Processor time of the house and of this program, which is its client.
#[derive(Default)]
struct Spent {
    house: Spending,
    client: Duration,
}

impl Spent {
    fn now(house: &House) -> anyhow::Result<Self> {
        Ok(Self { house: Spending::of(house.process_id())?, client: Spending::own() })
    }

    fn since(&self, before: &Self) -> Self {
        Self { house: self.house.since(&before.house), client: self.client.saturating_sub(before.client) }
    }

    fn add(&mut self, more: &Self) {
        self.house.add(&more.house);
        self.client += more.client;
    }
}

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
    let mut spent = [("with reuse", Spent::default(), 0), ("fresh", Spent::default(), 0)];
    for _ in 0..run.times(3).max(1) {
        inserts.push(floor.insert(IN_FLIGHT as u32, run.seconds(6)).await?.per_second);
        for ((calls, rounds), (_, spent, counted)) in calls.iter().zip([&mut reuse, &mut fresh]).zip(&mut spent) {
            run.closed(calls.clone(), IN_FLIGHT, Duration::ZERO, Duration::from_secs(1)).await;
            let before = Spent::now(&house)?;
            let measured = run.closed(calls.clone(), IN_FLIGHT, Duration::ZERO, run.seconds(8)).await;
            spent.add(&Spent::now(&house)?.since(&before));
            *counted += measured.answered();
            rounds.add(&measured);
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
    for (name, spent, calls) in spent {
        let each = |time: Duration| format!("{:.2} ms", millis(time) / calls.max(1) as f64);
        let Spending { server, postgres, workers } = spent.house;
        let all = millis(server + postgres + workers + spent.client) / calls.max(1) as f64;
        run.push(Row::new(SECTION, format!("RCRT, {name}: processor time of a call"), all, "ms").note(format!(
            "server and runner {}, Postgres {}, sandbox workers {}, the client {}",
            each(server),
            each(postgres),
            each(workers),
            each(spent.client)
        )));
    }
    Ok(())
}
