//! Several servers on one store: each receives the definitions of the other servers by the tenant's
//! events.

use std::time::Duration;

use rcrt_conformance::Harness;
use rcrt_conformance::harness::{PATIENCE, noted};
use serde_json::json;

use crate::harness::{LayerHarness, of_notes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_servers_definition_arrives_by_its_event() {
    let harness = LayerHarness::start().await;
    let other = harness.another().await;
    let agent = harness.alone().await;
    let there = other.here(&agent);
    let bad = || noted("x", json!({"n": 0}), &[]);
    // Both have cached that no definition exists.
    agent.create(bad(), None).await.unwrap();
    there.create(bad(), None).await.unwrap();
    let id = agent.create(of_notes(json!({})), None).await.unwrap().id;
    until(|| async { there.create(bad(), None).await.is_err() }).await;
    agent.delete(id, None).await.unwrap();
    until(|| async { there.create(bad(), None).await.is_ok() }).await;
    // A definition that is written below the layer arrives as well.
    harness.below(&agent).create(of_notes(json!({})), None).await.unwrap();
    until(|| async { agent.create(bad(), None).await.is_err() && there.create(bad(), None).await.is_err() }).await;
    other.close().await;
    harness.close().await;
}

/// Repeats the check until the event has arrived.
async fn until<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    let asking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("the event in time");
}
