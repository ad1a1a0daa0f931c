//! How many calls of one agent can be queued.

use rcrt_breadcrumb::{NewBreadcrumb, Role, StoreError};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{answer_to, claim_of, note, request};
use rcrt_store::StoreOptions;
use serde_json::json;
use uuid::Uuid;

use crate::harness::StoreHarness;

const LIMIT: u32 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_has_a_limited_number_of_queued_calls() {
    let harness = StoreHarness::with(|options| StoreOptions { max_queued_calls: LIMIT, ..options }).await;
    let agent = harness.alone().await;
    let mut queued = Vec::new();
    for number in 0..LIMIT {
        queued.push(agent.create(request(), Some(&format!("call {number}"))).await.unwrap().id);
    }
    let refused = agent.create(request(), None).await.unwrap_err();
    assert_eq!(refused, StoreError::QueueFull { limit: u64::from(LIMIT) });
    assert!(refused.is_retryable(), "{refused}");
    // Nothing else is refused: repeated requests, other records, and calls of another agent.
    assert!(agent.create(request(), Some("call 0")).await.unwrap().replayed);
    agent.create(note("a note"), None).await.unwrap();
    let other = harness.agent(agent.identity.owner_id).await;
    other.create(request(), None).await.unwrap();
    // A running call can call others, so that it can end.
    let running = agent.claim(&claim_of(1)).await.unwrap().pop().unwrap();
    agent.start(running.lease, 1).await.unwrap();
    let parent = running.lease.request;
    let runner = harness.agent_with(agent.identity.owner_id, &[Role::Runner]).await;
    let calling = runner.on_behalf_of(agent.identity.agent_id).unwrap();
    for _ in 0..=LIMIT {
        calling.create(child_of(parent), None).await.unwrap();
    }

    // Each call that ended or was cancelled, or that a runner has, makes room for another. The
    // number is counted again after a moment.
    agent.complete(running.lease, answer_to(&running, json!({}))).await.unwrap();
    let cancelled = queued.into_iter().find(|id| *id != parent).unwrap();
    agent.cancel(cancelled).await.unwrap();
    for _ in 0..2 {
        while let Err(error) = agent.create(request(), None).await {
            assert!(matches!(error, StoreError::QueueFull { .. }), "{error}");
            tokio::task::yield_now().await;
        }
    }
    assert!(matches!(agent.create(request(), None).await, Err(StoreError::QueueFull { .. })));
    harness.close().await;
}

fn child_of(parent: Uuid) -> NewBreadcrumb {
    let mut child = request();
    child.context.insert("parent".into(), parent.to_string().into());
    child
}
