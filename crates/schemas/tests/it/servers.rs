//! Several servers on one store: each hears of the others' definitions by the tenant's events.

use std::time::Duration;

use conformance::Harness;
use conformance::harness::{PATIENCE, noted};
use serde_json::json;

use crate::harness::{LayerHarness, of_notes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_servers_definition_is_heard_of_by_its_event() {
    let harness = LayerHarness::start().await;
    let other = harness.another().await;
    let agent = harness.alone().await;
    let there = other.here(&agent);
    let bad = || noted("x", json!({"n": 0}), &[]);
    // Both have read that there is none.
    agent.create(bad(), None).await.unwrap();
    there.create(bad(), None).await.unwrap();
    let id = agent.create(of_notes(json!({})), None).await.unwrap().id;
    until(|| async { there.create(bad(), None).await.is_err() }).await;
    agent.delete(id, None).await.unwrap();
    until(|| async { there.create(bad(), None).await.is_ok() }).await;
    // What is written below every layer is heard of as well.
    harness.below(&agent).create(of_notes(json!({})), None).await.unwrap();
    until(|| async { agent.create(bad(), None).await.is_err() && there.create(bad(), None).await.is_err() }).await;
    other.close().await;
    harness.close().await;
}

/// Asks again as often as an event may take.
async fn until<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    let asking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("the event in time");
}
