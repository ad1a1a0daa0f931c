//! A runner in the process that writes the requests.

use std::time::Duration;

use rcrt_breadcrumb::{CallState, ResponseStatus};
use rcrt_runner::RunnerOptions;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, options};

/// How many of the calls began their life running.
pub async fn begun_with_their_requests(fixture: &Fixture) -> i64 {
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    sqlx::query_scalar(
        "SELECT count(*) FROM calls
         WHERE finished_at = queued_at OR fence = (extract(epoch FROM queued_at) * 1000000)::bigint",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap()
}

/// From here on the runner knows that nothing waits in the queue.
async fn settled(fixture: &Fixture, tool: &str) -> Running {
    let runner = fixture.start(&Fake::new());
    let mut calls = 0;
    while begun_with_their_requests(fixture).await == 0 {
        calls += 1;
        assert!(calls < 1000, "no call is ever taken as it is written");
        fixture.call(tool, json!({})).await;
    }
    runner
}

/// From here on the runner knows that nothing waits in the queue. The tool waits for this gate.
pub async fn settle_behind(fixture: &Fixture, gate: &Semaphore, tool: &str) {
    for _ in 0..1000 {
        gate.add_permits(1);
        fixture.call(tool, json!({})).await;
        if begun_with_their_requests(fixture).await > 0 {
            return;
        }
    }
    panic!("no call is ever taken as it is written");
}

#[tokio::test]
async fn at_rest_a_call_never_waits_in_the_queue() {
    let fixture = Fixture::new().await;
    fixture.create(code("echo", json!({}))).await;
    let runner = settled(&fixture, "echo").await;
    let (mut begun, mut calls) = (begun_with_their_requests(&fixture).await, 0);
    let enough = begun + 5;
    while begun < enough {
        calls += 1;
        assert!(calls < 1000, "calls at rest are taken as they are written");
        let response = fixture.call("echo", json!({"n": calls})).await;
        assert_eq!(response.output, Some(json!({"input": {"n": calls}, "version": 1})));
        assert_eq!(response.metadata["attempt"], json!(1));
        // On a machine that is busy with other things the runner gives some of them to the queue.
        let was_taken = begun_with_their_requests(&fixture).await > begun;
        assert_eq!(response.metadata["stages"]["queue_ms"] == json!(0.0), was_taken);
        begun += i64::from(was_taken);
    }
    // A tool that is not known is looked for, and its calls are answered as ever.
    assert_eq!(fixture.call("ecko", json!({})).await.status, ResponseStatus::Error);
    assert_eq!(begun_with_their_requests(&fixture).await, enough);
    runner.stop().await;
    let waits = fixture.ask("echo", json!({})).await;
    assert_eq!(fixture.person.call(waits).await.unwrap().state, CallState::Queued);
}

#[tokio::test]
async fn more_calls_than_places_are_each_run_once() {
    const CALLS: usize = 12;
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    fixture.create(code("echo", json!({}))).await;
    let gate = fake.waits("waits");
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 2, max_calls_per_tool: 1, ..options() });
    while begun_with_their_requests(&fixture).await == 0 {
        fixture.call("echo", json!({})).await;
    }
    let mut asked = Vec::new();
    for _ in 0..CALLS {
        asked.push(fixture.ask("waits", json!({})).await);
    }
    // Beyond the places and the promises they are in the queue, where another runner would find them.
    let is_running = |progress: &crate::fake::RunCounts| progress.running.get("waits") == Some(&1);
    fake.until(is_running).await;
    assert_eq!(fixture.call("echo", json!({})).await.status, ResponseStatus::Success, "another tool has its place");
    while states(&fixture, &asked).await.iter().filter(|state| **state == CallState::Queued).count() < CALLS - 1 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(CALLS);
    for request in &asked {
        assert_eq!(fixture.answer(*request).await.metadata["attempt"], 1);
    }
    let mut begun = fake.begun.lock().unwrap().clone();
    begun.retain(|request| asked.contains(request));
    begun.sort_unstable();
    asked.sort_unstable();
    assert_eq!(begun, asked);
    assert_eq!(fake.progress.borrow().most["waits"], 1, "the cap held");
    runner.stop().await;
}

async fn states(fixture: &Fixture, requests: &[Uuid]) -> Vec<CallState> {
    let mut states = Vec::new();
    for request in requests {
        states.push(fixture.person.call(*request).await.unwrap().state);
    }
    states
}

#[tokio::test]
async fn a_runner_that_stops_gives_back_what_it_was_promised_for() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    let gate = fake.waits("waits");
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 2, max_calls_per_tool: 1, ..options() });
    settle_behind(&fixture, &gate, "waits").await;
    let first = fixture.ask("waits", json!({})).await;
    fake.until(|progress| progress.running.get("waits") == Some(&1)).await;
    let second = fixture.ask("waits", json!({})).await;
    runner.told_to_stop();
    gate.add_permits(1);
    runner.stop().await;
    assert_eq!(fixture.answer(first).await.status, ResponseStatus::Success);
    let call = fixture.person.call(second).await.unwrap();
    assert_eq!((call.state, call.attempt), (CallState::Queued, 0));
    let next = fixture.start(&Fake::new());
    assert_eq!(fixture.answer(second).await.metadata["attempt"], 1);
    next.stop().await;
}

/// What began with its request counts as running: its attempt is had.
#[tokio::test]
async fn a_runner_that_is_lost_leaves_its_calls_to_the_next_where_an_attempt_is_left() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("again", json!({"limits": {"max_attempts": 2}}))).await;
    fixture.create(code("once", json!({}))).await;
    let lease = Duration::from_secs(1);
    let runner = fixture.start_with(&fake, RunnerOptions { lease, ..options() });
    while begun_with_their_requests(&fixture).await == 0 {
        fixture.call("again", json!({})).await;
    }
    let _never = (fake.waits("again"), fake.waits("once"));
    let (again, once) = (fixture.ask("again", json!({})).await, fixture.ask("once", json!({})).await);
    fake.until(|progress| progress.running.values().sum::<usize>() == 2).await;
    runner.kill().await;
    let next = fixture.start(&Fake::new());
    assert_eq!(fixture.answer(again).await.metadata["attempt"], 2);
    let lost = fixture.answer(once).await;
    assert_eq!((lost.status, lost.is_retryable), (ResponseStatus::Error, Some(true)));
    next.stop().await;
}
