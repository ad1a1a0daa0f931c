//! I/O-bound calls together with calls that need a worker.

use std::collections::HashSet;

use rcrt_breadcrumb::{ResponseStatus, schema_names};
use rcrt_runner::RunnerOptions;
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::fixture::{Fixture, code, native, options};

fn http(name: &str) -> rcrt_breadcrumb::NewBreadcrumb {
    native(name, json!({"implementation": {"type": "http", "url": "https://api.example.com/"}}))
}

async fn two_slots(fixture: &Fixture, fake: &std::sync::Arc<Fake>) -> crate::fixture::Running {
    let runner = fixture.start_with(fake, RunnerOptions { max_calls: 2, max_calls_per_tool: 2, ..options() });
    fixture.catalog(|catalog| catalog.tools.len() == 3).await;
    runner
}

async fn all_answered_once(fixture: &Fixture, count: usize) {
    let mut answered = HashSet::new();
    let is_good = |context: &Value| context["status"] == "success" && context["metadata"]["attempt"] == 1;
    fixture
        .events(count, |event| {
            let context = Value::Object(event.context.clone().into());
            event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE)
                && is_good(&context)
                && answered.insert(context["request_id"].to_string())
        })
        .await;
}

#[tokio::test]
async fn many_waiting_calls_do_not_block_workers() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for tool in [http("slow"), code("quick", json!({})), code("other", json!({}))] {
        fixture.create(tool).await;
    }
    let gate = fake.waits("slow");
    let runner = two_slots(&fixture, &fake).await;
    for _ in 0..40 {
        fixture.ask("slow", json!({})).await;
    }
    fake.until(|progress| progress.running.get("slow") == Some(&40)).await;
    for _ in 0..4 {
        assert_eq!(fixture.call("quick", json!({})).await.status, ResponseStatus::Success);
    }
    gate.add_permits(40);
    all_answered_once(&fixture, 44).await;
    runner.stop().await;
}

/// While every worker is busy, I/O-bound calls still start, and CPU-bound calls stay within their
/// slots.
#[tokio::test]
async fn io_bound_calls_start_while_all_workers_are_busy() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for tool in [http("slow"), code("busy", json!({})), code("other", json!({}))] {
        fixture.create(tool).await;
    }
    let (waiting, busy, other) = (fake.waits("slow"), fake.waits("busy"), fake.waits("other"));
    let runner = two_slots(&fixture, &fake).await;
    for _ in 0..2 {
        fixture.ask("busy", json!({})).await;
    }
    fake.until(|progress| progress.running.get("busy") == Some(&2)).await;
    // In between, calls that find no worker, of a tool without a running call.
    for _ in 0..10 {
        fixture.ask("other", json!({})).await;
        fixture.ask("slow", json!({})).await;
        fixture.ask("busy", json!({})).await;
    }
    fake.until(|progress| progress.running.get("slow") == Some(&10)).await;
    waiting.add_permits(10);
    busy.add_permits(12);
    other.add_permits(10);
    all_answered_once(&fixture, 32).await;
    let progress = fake.progress.borrow().clone();
    assert_eq!(progress.most["slow"], 10);
    assert!(progress.most["busy"] <= 2 && progress.most["other"] <= 2, "{progress:?}");
    runner.stop().await;
}

#[tokio::test]
async fn the_limit_of_waiting_calls_is_enforced() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for tool in [http("slow"), http("slower"), code("quick", json!({}))] {
        fixture.create(tool).await;
    }
    let (slow, slower) = (fake.waits("slow"), fake.waits("slower"));
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 2, max_waiting: 8, ..options() });
    fixture.catalog(|catalog| catalog.tools.len() == 3).await;
    for _ in 0..12 {
        fixture.ask("slow", json!({})).await;
    }
    // One tool can have three quarters of the slots; a second tool still gets one.
    fake.until(|progress| progress.running.get("slow") == Some(&6)).await;
    fixture.ask("slower", json!({})).await;
    fake.until(|progress| progress.running.get("slower") == Some(&1)).await;
    assert_eq!(fixture.call("quick", json!({})).await.status, ResponseStatus::Success);
    slow.add_permits(12);
    slower.add_permits(1);
    all_answered_once(&fixture, 14).await;
    assert_eq!(fake.progress.borrow().most["slow"], 6);
    runner.stop().await;
}
