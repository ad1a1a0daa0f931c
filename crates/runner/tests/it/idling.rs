//! Calls that only wait for others, beside calls that need a worker.

use std::collections::HashSet;

use breadcrumb::{ResponseStatus, schema_names};
use runner::RunnerOptions;
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::place::{Place, code, native, options};

fn http(name: &str) -> breadcrumb::NewBreadcrumb {
    native(name, json!({"implementation": {"type": "http", "url": "https://api.example.com/"}}))
}

async fn two_places(place: &Place, fake: &std::sync::Arc<Fake>) -> crate::place::Running {
    let runner = place.start_with(fake, RunnerOptions { max_calls: 2, max_calls_per_tool: 2, ..options() });
    place.catalog(|catalog| catalog.tools.len() == 3).await;
    runner
}

async fn all_answered_once(place: &Place, count: usize) {
    let mut answered = HashSet::new();
    let is_good = |context: &Value| context["status"] == "success" && context["metadata"]["attempt"] == 1;
    place
        .events(count, |event| {
            let context = Value::Object(event.context.clone());
            event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE)
                && is_good(&context)
                && answered.insert(context["request_id"].to_string())
        })
        .await;
}

#[tokio::test]
async fn many_wait_at_once_and_keep_no_worker_from_its_work() {
    let (place, fake) = (Place::new().await, Fake::new());
    for tool in [http("slow"), code("quick", json!({})), code("other", json!({}))] {
        place.create(tool).await;
    }
    let gate = fake.waits("slow");
    let runner = two_places(&place, &fake).await;
    for _ in 0..40 {
        place.ask("slow", json!({})).await;
    }
    fake.until(|progress| progress.running.get("slow") == Some(&40)).await;
    for _ in 0..4 {
        assert_eq!(place.call("quick", json!({})).await.status, ResponseStatus::Success);
    }
    gate.add_permits(40);
    all_answered_once(&place, 44).await;
    runner.stop().await;
}

/// While every worker is taken, calls that only wait still begin, and the calls that need workers keep their turns.
#[tokio::test]
async fn full_workers_keep_nobody_from_waiting() {
    let (place, fake) = (Place::new().await, Fake::new());
    for tool in [http("slow"), code("busy", json!({})), code("other", json!({}))] {
        place.create(tool).await;
    }
    let (waiting, busy, other) = (fake.waits("slow"), fake.waits("busy"), fake.waits("other"));
    let runner = two_places(&place, &fake).await;
    for _ in 0..2 {
        place.ask("busy", json!({})).await;
    }
    fake.until(|progress| progress.running.get("busy") == Some(&2)).await;
    // Between them calls that find no worker, of a tool of which none runs.
    for _ in 0..10 {
        place.ask("other", json!({})).await;
        place.ask("slow", json!({})).await;
        place.ask("busy", json!({})).await;
    }
    fake.until(|progress| progress.running.get("slow") == Some(&10)).await;
    waiting.add_permits(10);
    busy.add_permits(12);
    other.add_permits(10);
    all_answered_once(&place, 32).await;
    let progress = fake.progress.borrow().clone();
    assert_eq!(progress.most["slow"], 10);
    assert!(progress.most["busy"] <= 2 && progress.most["other"] <= 2, "{progress:?}");
    runner.stop().await;
}

#[tokio::test]
async fn no_more_wait_than_may() {
    let (place, fake) = (Place::new().await, Fake::new());
    for tool in [http("slow"), http("slower"), code("quick", json!({}))] {
        place.create(tool).await;
    }
    let (slow, slower) = (fake.waits("slow"), fake.waits("slower"));
    let runner = place.start_with(&fake, RunnerOptions { max_calls: 2, max_waiting: 8, ..options() });
    place.catalog(|catalog| catalog.tools.len() == 3).await;
    for _ in 0..12 {
        place.ask("slow", json!({})).await;
    }
    // Three quarters are the most of one tool; a second one has its place all the same.
    fake.until(|progress| progress.running.get("slow") == Some(&6)).await;
    place.ask("slower", json!({})).await;
    fake.until(|progress| progress.running.get("slower") == Some(&1)).await;
    assert_eq!(place.call("quick", json!({})).await.status, ResponseStatus::Success);
    slow.add_permits(12);
    slower.add_permits(1);
    all_answered_once(&place, 14).await;
    assert_eq!(fake.progress.borrow().most["slow"], 6);
    runner.stop().await;
}
