//! Latency at low load, from sending the request to receiving the response's event, against two
//! durable inserts in a row.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::Isolation;
use rcrt_load::Row;
use serde_json::json;

use crate::floors::PgBench;
use crate::instance::{Answers, ToolCalls, adding};
use crate::rounds::{Rounds, median};
use crate::run::{LOW_LOAD_PER_SECOND, Run, micros, millis};

const SECTION: &str = "latency at low load";
const TIMES_TWO_INSERTS: f64 = 4.0;
const TAIL: f64 = 5.0;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let instance = run.idle_instance(&run.folder("low-load"), &[]).await?;
    let client = instance.client();
    let answers = Answers::follow(&instance).await?;
    let mut calls = Vec::new();
    for (name, isolation) in [("bench-default", Isolation::Call), ("bench-reuse", Isolation::Tool)] {
        let tool = adding(name, isolation).add(&client).await?;
        calls.push(Arc::new(ToolCalls {
            answers: answers.clone(),
            tool,
            input: |number| json!({"a": number, "b": 2}),
        }));
    }
    // The same on an instance whose runner takes calls from the queue only.
    let queue = run.idle_instance(&run.folder("low-load-queue"), &["--dispatch", "queue"]).await?;
    let tool = adding("bench-default", Isolation::Call).add(&queue.client()).await?;
    let input = |number| json!({"a": number, "b": 2});
    let queued_calls = Arc::new(ToolCalls { answers: Answers::follow(&queue).await?, tool, input });
    run.at_low_load(queued_calls.clone(), run.seconds(3)).await;
    let mut queued = Rounds::default();
    for calls in &calls {
        run.at_low_load(calls.clone(), run.seconds(3)).await;
    }
    let floor = PgBench::prepare(&instance.database(), run.root()).await?;
    let (mut inserts, mut rare) = (Vec::new(), Vec::new());
    let (mut fresh, mut reuse) = (Rounds::default(), Rounds::default());
    let mut in_a_row = [Rounds::default(), Rounds::default()];
    for _ in 0..run.times(3).max(1) {
        inserts.push(micros(floor.insert(1, run.seconds(4)).await?.median));
        rare.push(micros(floor.insert_at(LOW_LOAD_PER_SECOND, run.seconds(8)).await?.median));
        for (calls, rounds) in calls.iter().zip([&mut fresh, &mut reuse]) {
            rounds.add(&run.at_low_load(calls.clone(), run.seconds(12)).await);
        }
        queued.add(&run.at_low_load(queued_calls.clone(), run.seconds(12)).await);
        for (calls, rounds) in calls.iter().zip(&mut in_a_row) {
            rounds.add(&run.closed(calls.clone(), 1, Duration::from_secs(1), run.seconds(4)).await);
        }
    }
    instance.stop().await?;
    queue.stop().await?;
    let two_inserts = 2.0 * median(inserts) / 1e3;
    run.push(
        Row::new(SECTION, "floor: two durable inserts in a row (pgbench, 1 client), p50", two_inserts, "ms")
            .note("twice the median of one"),
    );
    let two_rare = 2.0 * median(rare) / 1e3;
    run.push(
        Row::new(SECTION, "floor: the same two, at low load (pgbench, 1 client, 20 a second), p50", two_rare, "ms")
            .note("as seldom as the calls: processors and caches are idle as well"),
    );
    for (name, rounds, is_judged) in [("RCRT", &fresh, true), ("RCRT, with reuse", &reuse, false)] {
        let (p50, p99) = (millis(rounds.quantile(0.5)), millis(rounds.quantile(0.99)));
        let mut middle = Row::new(SECTION, format!("{name}: p50"), p50, "ms").ratio(two_inserts, "two inserts");
        let mut tail = Row::new(SECTION, format!("{name}: p99"), p99, "ms").ratio(p50, "its p50");
        if is_judged {
            middle =
                middle.target(format!("≤ {TIMES_TWO_INSERTS} × two inserts"), p50 <= TIMES_TWO_INSERTS * two_inserts);
            tail = tail.target(format!("≤ {TAIL} × p50"), p99 <= TAIL * p50);
        }
        run.push(rounds.with_failures(middle));
        let like = Row::new(SECTION, format!("{name}: p50, against inserts at low load"), p50, "ms");
        run.push(like.ratio(two_rare, "two inserts at low load"));
        run.push(tail);
    }
    let row = Row::new(SECTION, "RCRT, dispatch: queue: p50", millis(queued.quantile(0.5)), "ms");
    run.push(queued.with_failures(row.ratio(millis(fresh.quantile(0.5)), "dispatch: local")));
    for (name, rounds) in ["RCRT", "RCRT, with reuse"].into_iter().zip(&in_a_row) {
        run.push(
            Row::new(SECTION, format!("{name}, one call after the other: p50"), millis(rounds.quantile(0.5)), "ms")
                .ratio(two_inserts, "two inserts")
                .note("as the baseline's inserts: each starts when the one before has finished"),
        );
    }
    Ok(())
}
