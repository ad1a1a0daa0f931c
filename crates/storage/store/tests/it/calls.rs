//! Lost runners and expired requests, without waiting for the time to pass.

use chrono::{TimeDelta, Utc};
use futures::future::join_all;
use rcrt_breadcrumb::{
    BreadcrumbQuery, CallState, ErrorCode, MAX_DESCENDANTS, NewBreadcrumb, Release, Role, StoreError, ToolRequest,
    ToolResponse, schema_names,
};
use rcrt_conformance::harness::{answer_to, claim_of, request};
use rcrt_conformance::{Agent, Harness};
use serde_json::json;
use uuid::Uuid;

use crate::harness::StoreHarness;

async fn end_every_lease(harness: &StoreHarness) {
    sqlx::query("UPDATE calls SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
        .execute(&mut harness.admin().await)
        .await
        .unwrap();
}

async fn responses(agent: &Agent, request: Uuid) -> Vec<ToolResponse> {
    let query = BreadcrumbQuery::tagged(ToolResponse::tag(&request.to_string()));
    let found = agent.list(&query).await.unwrap();
    found.into_iter().map(|item| ToolResponse::from_context(&item.context.unwrap()).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_claimed_call_is_requeued_and_a_lost_running_call_fails() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(agent.create(request(), None).await.unwrap().id);
    }
    let claims = agent.claim(&claim_of(2)).await.unwrap();
    agent.start(claims[1].lease, 1).await.unwrap();
    end_every_lease(&harness).await;
    harness.store.rescue().await.unwrap();

    assert_eq!(agent.call(ids[0]).await.unwrap().state, CallState::Queued);
    assert_eq!(agent.call(ids[1]).await.unwrap().state, CallState::Finished);
    let answers = responses(&agent, ids[1]).await;
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].error_code, answers[0].is_retryable), (Some(ErrorCode::ExecutionFailed), Some(true)));
    assert!(responses(&agent, ids[0]).await.is_empty());
    for claim in &claims {
        let late = agent.complete(claim.lease, answer_to(claim, json!(1))).await;
        assert!(matches!(late, Err(StoreError::LeaseLost { .. })), "{late:?}");
    }
    let again = agent.claim(&claim_of(5)).await.unwrap();
    assert_eq!((again.len(), again[0].request.id), (1, ids[0]));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeatable_tool_is_retried_until_its_attempts_are_used() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let id = agent.create(request(), None).await.unwrap().id;
    for attempt in 1..=3 {
        let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
        assert_eq!(claim.attempt, attempt);
        agent.start(claim.lease, 3).await.unwrap();
        end_every_lease(&harness).await;
        harness.store.rescue().await.unwrap();
    }
    assert_eq!(agent.call(id).await.unwrap().state, CallState::Finished);
    let answers = responses(&agent, id).await;
    assert_eq!(answers.len(), 1);
    assert!(answers[0].error.as_ref().unwrap().contains("attempt 3"), "{:?}", answers[0].error);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_is_rejected_once_when_its_attempts_are_used() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let context = json!({"request_id": "mine", "tool_spec": {"name": "adder"}});
    let record = NewBreadcrumb {
        title: "Create a tool".into(),
        schema_name: Some(schema_names::TOOL_CREATE_REQUEST.into()),
        context: context.as_object().unwrap().clone(),
        ..NewBreadcrumb::default()
    };
    let id = agent.create(record, None).await.unwrap().id;
    let answers = async || {
        let query = BreadcrumbQuery { include_context: true, ..BreadcrumbQuery::tagged(ToolResponse::tag("mine")) };
        agent.list(&query).await.unwrap()
    };
    let mut lost = Vec::new();
    for attempt in 1..=3 {
        assert!(answers().await.is_empty(), "before attempt {attempt}");
        let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
        assert_eq!((claim.request.id, claim.attempt), (id, attempt));
        agent.start(claim.lease, 3).await.unwrap();
        end_every_lease(&harness).await;
        harness.store.rescue().await.unwrap();
        lost.push(claim);
    }
    // The lost runners come back, and another looks for work.
    for claim in &lost {
        let late = agent.complete(claim.lease, answer_to(claim, json!({"status": "created"}))).await;
        assert!(matches!(late, Err(StoreError::LeaseLost { .. })), "{late:?}");
    }
    harness.store.rescue().await.unwrap();
    assert!(agent.claim(&claim_of(1)).await.unwrap().is_empty());
    let found = answers().await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].schema_name.as_deref(), Some(schema_names::TOOL_CREATE_RESPONSE));
    assert!(found[0].tags.contains(&"tool:create:response".to_owned()), "{:?}", found[0].tags);
    let response = found[0].context.as_ref().unwrap();
    assert_eq!((&response["status"], &response["request_id"]), (&json!("rejected"), &json!("mine")));
    assert_eq!((&response["error_code"], &response["is_retryable"]), (&json!("ExecutionFailed"), &json!(true)));
    for text in [&response["error"], &response["validation"]["errors"][0]["message"]] {
        let text = text.as_str().unwrap();
        assert!(text.contains("lost while it created the tool (attempt 3, which is the last)"), "{text}");
    }
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.attempt), (CallState::Finished, 3));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_of_a_lost_runner_finishes_as_cancelled() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let id = agent.create(request(), None).await.unwrap().id;
    agent.claim(&claim_of(1)).await.unwrap();
    agent.cancel(id).await.unwrap();
    end_every_lease(&harness).await;
    harness.store.rescue().await.unwrap();
    assert_eq!(responses(&agent, id).await[0].error_code, Some(ErrorCode::Cancelled));
    harness.close().await;
}

/// A runner does this itself, unless it is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_finished_call_waited_for_is_cancelled() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let parent = agent.create(request(), None).await.unwrap().id;
    let claims = agent.claim(&claim_of(1)).await.unwrap();
    agent.start(claims[0].lease, 1).await.unwrap();
    let runner = harness.agent_with(agent.identity.owner_id, &[Role::Runner]).await;
    let acting = runner.on_behalf_of(agent.identity.agent_id).unwrap();
    let earlier = agent.create(request(), None).await.unwrap().id;
    let mut children = Vec::new();
    for awaited in [true, true, false] {
        let mut record = request();
        record.context.insert("parent".into(), json!(parent));
        record.context.insert("awaited".into(), json!(awaited));
        children.push(acting.create(record, None).await.unwrap().id);
    }
    harness.store.cancel_orphans().await.unwrap();
    assert_eq!(agent.call(children[0]).await.unwrap().state, CallState::Queued, "its parent still runs");
    end_every_lease(&harness).await;
    harness.store.rescue().await.unwrap();
    let running = agent.claim(&claim_of(1)).await.unwrap();
    assert_eq!(running[0].request.id, children[0], "before an older one that no call waits for");
    assert_eq!(harness.store.cancel_orphans().await.unwrap(), 2);
    assert_eq!(harness.store.cancel_orphans().await.unwrap(), 0);
    assert!(agent.call(children[0]).await.unwrap().cancel_requested);
    assert_eq!(responses(&agent, children[1]).await[0].error_code, Some(ErrorCode::Cancelled));
    for untouched in [earlier, children[2]] {
        assert_eq!(agent.call(untouched).await.unwrap().state, CallState::Queued);
    }
    harness.close().await;
}

/// All calls below one request are counted together, also those that are made at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_below_one_request_are_limited_in_total() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let runner = harness.agent_with(agent.identity.owner_id, &[Role::Runner]).await;
    let acting = runner.on_behalf_of(agent.identity.agent_id).unwrap();
    let below = |parent: Uuid| {
        let mut record = request();
        record.context.insert("parent".into(), json!(parent));
        record
    };
    let root = agent.create(request(), None).await.unwrap().id;
    let other = agent.create(request(), None).await.unwrap().id;
    let child = acting.create(below(root), Some("first")).await.unwrap().id;
    let grandchild = acting.create(below(child), None).await.unwrap().id;
    // A repetition makes no call.
    assert!(acting.create(below(root), Some("first")).await.unwrap().replayed);
    let mut admin = harness.admin().await;
    let counted: Vec<(Uuid, i32)> =
        sqlx::query_as("SELECT request, descendants FROM calls WHERE request = ANY ($1) ORDER BY request")
            .bind([root, other, child, grandchild])
            .fetch_all(&mut admin)
            .await
            .unwrap();
    assert_eq!(counted, [(root, 2), (other, 0), (child, 0), (grandchild, 0)]);

    let nearly = i32::try_from(MAX_DESCENDANTS).unwrap() - 3;
    sqlx::query("UPDATE calls SET descendants = $2 WHERE request = $1")
        .bind(root)
        .bind(nearly)
        .execute(&mut admin)
        .await
        .unwrap();
    let made = (0..12).map(|index| acting.create(below([root, child, grandchild][index % 3]), None));
    let (written, refused): (Vec<_>, Vec<_>) = join_all(made).await.into_iter().partition(Result::is_ok);
    assert_eq!(written.len(), 3);
    for error in refused {
        let error = error.unwrap_err();
        assert_eq!(error, StoreError::too_many_descendants());
        assert!(error.to_string().contains("1000 calls have been made below"), "{error}");
    }
    assert!(acting.create(below(root), Some("first")).await.unwrap().replayed);
    acting.create(below(other), None).await.unwrap();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_expires_in_the_queue_times_out() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let ended = NewBreadcrumb {
        ttl: Some(Utc::now() - TimeDelta::seconds(1)),
        ..ToolRequest::record("echo", json!({}), Some("mine"), Some("workspace:one"))
    };
    let id = agent.create(ended, None).await.unwrap().id;
    assert!(agent.claim(&claim_of(1)).await.unwrap().is_empty());
    harness.store.expire().await.unwrap();
    let found = agent.list(&BreadcrumbQuery::tagged("request:mine")).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].tags, ["workspace:one", "tool:response", "request:mine"]);
    let response = ToolResponse::from_context(found[0].context.as_ref().unwrap()).unwrap();
    assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::Timeout), Some(true)));
    assert_eq!(agent.call(id).await.unwrap().state, CallState::Finished);
    harness.close().await;
}

/// Moves the deadline of every request into the past.
async fn pass_every_deadline(harness: &StoreHarness) {
    sqlx::query("UPDATE calls SET deadline_at = now() - interval '1 second'")
        .execute(&mut harness.admin().await)
        .await
        .unwrap();
}

fn assert_too_late(answers: &[ToolResponse], when: &str) {
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].error_code, answers[0].is_retryable), (Some(ErrorCode::Timeout), Some(true)));
    let error = answers[0].error.as_deref().unwrap();
    assert!(error.contains("deadline") && error.ends_with(when), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overdue_queued_request_is_not_claimed_and_times_out() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let id = agent.create(request(), None).await.unwrap().id;
    pass_every_deadline(&harness).await;
    let free = agent.create(request(), None).await.unwrap().id;
    let claims = agent.claim(&claim_of(5)).await.unwrap();
    assert_eq!(claims.iter().map(|claim| claim.request.id).collect::<Vec<_>>(), [free]);
    harness.store.time_out_overdue().await.unwrap();
    assert_too_late(&responses(&agent, id).await, "before the tool ran");
    assert_eq!(agent.call(id).await.unwrap().state, CallState::Finished);
    assert!(responses(&agent, free).await.is_empty());
    assert_eq!(harness.store.time_out_overdue().await.unwrap(), 0);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overdue_running_call_is_left_to_its_runner() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let id = agent.create(request(), None).await.unwrap().id;
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    agent.start(claim.lease, 1).await.unwrap();
    pass_every_deadline(&harness).await;
    assert_eq!(harness.store.time_out_overdue().await.unwrap(), 0);
    agent.complete(claim.lease, answer_to(&claim, json!("late"))).await.unwrap();
    assert_eq!(responses(&agent, id).await[0].output, Some(json!("late")));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overdue_call_that_is_released_or_lost_is_not_requeued() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    // Released unstarted; released for a retry; lost while claimed; lost with an attempt left.
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(agent.create(request(), None).await.unwrap().id);
    }
    let claims = agent.claim(&claim_of(4)).await.unwrap();
    agent.start(claims[1].lease, 2).await.unwrap();
    agent.start(claims[3].lease, 2).await.unwrap();
    pass_every_deadline(&harness).await;
    agent.release(claims[0].lease, Release::Unstarted).await.unwrap();
    agent.release(claims[1].lease, Release::Retry { after_ms: 0 }).await.unwrap();
    end_every_lease(&harness).await;
    harness.store.rescue().await.unwrap();
    let ends = ["before the tool ran", "could be retried", "its runner was lost", "its runner was lost"];
    for (id, end) in ids.iter().zip(ends) {
        assert_too_late(&responses(&agent, *id).await, end);
    }
    harness.close().await;
}

/// After every sequence of steps there is exactly one response, and only a lease holder can change
/// the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sequence_of_steps_ends_with_one_response() {
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let handle = tokio::runtime::Handle::current();
    let mut runner = TestRunner::new(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() });
    tokio::task::block_in_place(|| {
        runner
            .run(&proptest::collection::vec(0..10_u8, 0..14), |steps| {
                handle.block_on(async {
                    let id = agent.create(request(), None).await.unwrap().id;
                    let mut claims = Vec::new();
                    let mut is_there = true;
                    for step in steps {
                        let last = claims.last().cloned();
                        match (step, last) {
                            (0 | 1, _) => claims.extend(agent.claim(&claim_of(1)).await.unwrap()),
                            (2, Some(claim)) => drop(agent.start(claim.lease, 2).await),
                            (3, Some(claim)) => drop(agent.release(claim.lease, Release::Unstarted).await),
                            (4, Some(claim)) => drop(agent.release(claim.lease, Release::Retry { after_ms: 0 }).await),
                            (5, _) => {
                                end_every_lease(&harness).await;
                                harness.store.rescue().await.unwrap();
                            }
                            (6, Some(_)) => {
                                let oldest = &claims[0];
                                drop(agent.complete(oldest.lease, answer_to(oldest, json!(1))).await);
                            }
                            (7, _) => drop(agent.cancel(id).await.unwrap()),
                            (9, _) => {
                                pass_every_deadline(&harness).await;
                                harness.store.time_out_overdue().await.unwrap();
                            }
                            (8, _) if is_there => {
                                agent.delete(id, None).await.unwrap();
                                is_there = false;
                            }
                            _ => {}
                        }
                    }
                    // Finish what is left.
                    while agent.call(id).await.unwrap().state != CallState::Finished {
                        end_every_lease(&harness).await;
                        harness.store.rescue().await.unwrap();
                        harness.store.time_out_overdue().await.unwrap();
                        if let Some(claim) = agent.claim(&claim_of(1)).await.unwrap().pop() {
                            agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
                        }
                    }
                    assert_eq!(responses(&agent, id).await.len(), 1);
                });
                Ok(())
            })
            .unwrap();
    });
    harness.close().await;
}
