//! Durable calls per second, 32 in flight, against single durable inserts, and the processor time
//! of a call.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::Isolation;
use rcrt_load::Row;
use serde_json::json;

use crate::floors::PgBench;
use crate::instance::{Answers, CpuTime, Instance, ToolCalls, adding};
use crate::rounds::{Rounds, median};
use crate::run::{Run, millis};

const SECTION: &str = "durable calls per second";
const IN_FLIGHT: usize = 32;
/// A call makes two durable writes, request and response. This is 0.6 of that limit.
const SHARE: f64 = 0.3;

/// Processor time of the instance and of this program, which is its client.
#[derive(Default)]
struct Spent {
    instance: CpuTime,
    client: Duration,
}

impl Spent {
    fn now(instance: &Instance) -> anyhow::Result<Self> {
        Ok(Self { instance: CpuTime::of(instance.process_id())?, client: CpuTime::own() })
    }

    fn since(&self, before: &Self) -> Self {
        Self { instance: self.instance.since(&before.instance), client: self.client.saturating_sub(before.client) }
    }

    fn add(&mut self, more: &Self) {
        self.instance.add(&more.instance);
        self.client += more.client;
    }
}

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let instance = run.idle_instance(&run.folder("throughput"), &[]).await?;
    let client = instance.client();
    let answers = Answers::follow(&instance).await?;
    let mut calls = Vec::new();
    for (name, isolation) in [("bench-reuse", Isolation::Tool), ("bench-default", Isolation::Call)] {
        let tool = adding(name, isolation).add(&client).await?;
        let input = |number| json!({"a": number, "b": 2});
        calls.push(Arc::new(ToolCalls { answers: answers.clone(), tool, input }));
    }
    // The same tool on an instance whose runner takes calls from the queue only.
    let queue = run.idle_instance(&run.folder("throughput-queue"), &["--dispatch", "queue"]).await?;
    let tool = adding("bench-reuse", Isolation::Tool).add(&queue.client()).await?;
    let input = |number| json!({"a": number, "b": 2});
    let queued_calls = Arc::new(ToolCalls { answers: Answers::follow(&queue).await?, tool, input });
    run.closed(queued_calls.clone(), IN_FLIGHT, Duration::ZERO, run.seconds(6)).await;
    for calls in &calls {
        run.closed(calls.clone(), IN_FLIGHT, Duration::ZERO, run.seconds(6)).await;
    }
    let floor = PgBench::prepare(&instance.database(), run.root()).await?;
    let mut inserts = Vec::new();
    let (mut reuse, mut clean, mut queued) = (Rounds::default(), Rounds::default(), Rounds::default());
    let mut spent = [("with reuse", Spent::default(), 0), ("by default", Spent::default(), 0)];
    for _ in 0..run.times(3).max(1) {
        inserts.push(floor.insert(IN_FLIGHT as u32, run.seconds(6)).await?.per_second);
        for ((calls, rounds), (_, spent, counted)) in calls.iter().zip([&mut reuse, &mut clean]).zip(&mut spent) {
            run.closed(calls.clone(), IN_FLIGHT, Duration::ZERO, Duration::from_secs(1)).await;
            let before = Spent::now(&instance)?;
            let measured = run.closed(calls.clone(), IN_FLIGHT, Duration::ZERO, run.seconds(8)).await;
            spent.add(&Spent::now(&instance)?.since(&before));
            *counted += measured.answered();
            rounds.add(&measured);
        }
        queued.add(&run.closed(queued_calls.clone(), IN_FLIGHT, Duration::from_secs(1), run.seconds(8)).await);
    }
    let inserts = median(inserts);
    let row_bytes = floor.row_bytes;
    instance.stop().await?;
    queue.stop().await?;
    run.push(
        Row::new(SECTION, "floor: pgbench, 32 clients, one insert each", inserts, "inserts/s")
            .note(format!("rows of {row_bytes} bytes, as a request's; fsync and synchronous_commit on")),
    );
    let name = "RCRT, warm tool with reuse";
    let row = Row::new(SECTION, name, reuse.per_second(), "calls/s").ratio(inserts, "pgbench, 32 clients");
    run.push(
        reuse.with_failures(
            row.target(format!("≥ {SHARE} × pgbench, 32 clients"), reuse.per_second() >= SHARE * inserts),
        ),
    );
    let row = Row::new(SECTION, "RCRT, warm tool, by default", clean.per_second(), "calls/s");
    run.push(clean.with_failures(row.ratio(inserts, "pgbench, 32 clients")));
    let row = Row::new(SECTION, "RCRT, dispatch: queue, with reuse", queued.per_second(), "calls/s");
    run.push(queued.with_failures(row.ratio(reuse.per_second(), "dispatch: local")));
    for (name, rounds) in [("with reuse", &reuse), ("by default", &clean)] {
        for (share, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let value = millis(rounds.quantile(quantile));
            run.push(Row::new(SECTION, format!("RCRT, {name}: latency {share} at 32 in flight"), value, "ms"));
        }
    }
    for (name, spent, calls) in spent {
        let (instance, parts) = spent.instance.of_each(calls);
        let client = millis(spent.client) / calls.max(1) as f64;
        run.push(
            Row::new(SECTION, format!("RCRT, {name}: processor time of a call"), instance + client, "ms")
                .note(format!("{parts}, the client {client:.2} ms")),
        );
    }
    Ok(())
}
