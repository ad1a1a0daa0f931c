use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{CallState, ErrorCode, ResponseStatus};
use rcrt_runner::RunnerOptions;
use rcrt_test_tenant::FailingStore;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, LONG_LEASE, PATIENCE, Running, code, options};

fn with_lease(lease: Duration) -> RunnerOptions {
    RunnerOptions { lease, ..options() }
}

async fn lease_end(fixture: &Fixture, request: Uuid) -> DateTime<Utc> {
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    let lease_until = sqlx::query_scalar("SELECT lease_until FROM calls WHERE request = $1").bind(request);
    lease_until.fetch_one(&mut admin).await.unwrap()
}

#[tokio::test]
async fn a_lease_is_extended_while_the_call_runs() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    let gate = fake.waits("waits");
    let store = FailingStore::new(fixture.runner.clone());
    let mut heartbeats = store.heartbeats.subscribe();
    let runner = Running::start(store, &fake, with_lease(Duration::from_secs(30)));
    let request = fixture.ask("waits", json!({})).await;
    fake.until(|progress| progress.begun == 1).await;
    let end = lease_end(&fixture, request).await;
    let sent = *heartbeats.borrow();
    let more = tokio::time::timeout(PATIENCE, heartbeats.wait_for(|now| *now > sent)).await;
    drop(more.expect("a heartbeat in time").unwrap());
    assert!(lease_end(&fixture, request).await > end);
    assert_eq!(fixture.person.call(request).await.unwrap().state, CallState::Running);
    gate.add_permits(1);
    assert_eq!(fixture.answer(request).await.status, ResponseStatus::Success);
    runner.stop().await;
}

#[tokio::test]
async fn a_runner_that_lost_its_lease_writes_nothing() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("deaf", json!({}))).await;
    fake.does("deaf", |_, cancelled| async move {
        cancelled.cancelled().await;
        Ok(json!("too late"))
    });
    let store = FailingStore::new(fixture.runner.clone());
    store.heartbeats_fail.store(true, Ordering::SeqCst);
    let runner = Running::start(store, &fake, with_lease(Duration::from_secs(3)));
    let response = fixture.call("deaf", json!({})).await;
    assert_eq!(response.error_code, Some(ErrorCode::ExecutionFailed));
    assert!(response.error.unwrap().contains("the runner was lost"), "the store's own response");
    fake.until(|progress| progress.running["deaf"] == 0).await;
    runner.stop().await;
    assert_eq!(fixture.list("tool.response.v1").await.len(), 1);
}

#[tokio::test]
async fn a_killed_runners_call_fails_or_is_retried_by_its_tools_limits() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("careful", json!({}))).await;
    fixture.create(code("again", json!({"limits": {"max_attempts": 2}}))).await;
    let _never = (fake.waits("careful"), fake.waits("again"));
    let killed = fixture.start_with(&fake, with_lease(LONG_LEASE));
    let careful = fixture.ask("careful", json!({})).await;
    let again = fixture.ask("again", json!({})).await;
    fake.until(|progress| progress.begun == 2).await;
    killed.kill().await;
    fixture.end_leases().await;
    let next = Fake::new();
    let runner = fixture.start(&next);
    let response = fixture.answer(careful).await;
    assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::ExecutionFailed), Some(true)));
    let response = fixture.answer(again).await;
    assert_eq!((response.status, &response.metadata["attempt"]), (ResponseStatus::Success, &json!(2)));
    assert_eq!(*next.begun.lock().unwrap(), [again]);
    runner.stop().await;
}

#[tokio::test]
async fn writing_a_response_is_retried_until_it_succeeds() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("echo", json!({}))).await;
    let store = FailingStore::new(fixture.runner.clone());
    store.completes_fail.store(3, Ordering::SeqCst);
    let runner = Running::start(store, &fake, options());
    assert_eq!(fixture.call("echo", json!({})).await.status, ResponseStatus::Success);
    assert_eq!(fake.progress.borrow().begun, 1, "it ran once");
    runner.stop().await;
}

#[tokio::test]
async fn a_broken_event_stream_is_resumed() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let store = FailingStore::new(fixture.runner.clone());
    store.events_break.store(true, Ordering::SeqCst);
    let runner = Running::start(store, &fake, options());
    let id = fixture.create(code("echo", json!({}))).await;
    assert_eq!(fixture.call("echo", json!({})).await.status, ResponseStatus::Success);
    fixture.change(id, 1, crate::fixture::code_context("echo", json!({"description": "second"}))).await;
    while fixture.call("echo", json!({})).await.output.unwrap()["version"] != 2 {}
    runner.stop().await;
}
