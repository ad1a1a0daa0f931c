//! The deadline of a request, counted from its write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, ResponseStatus, ToolFailure, ToolResponse};
use rcrt_runner::RunnerOptions;
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, PATIENCE, code, options};

fn assert_late(response: &ToolResponse, allowed: u64) {
    assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::Timeout), Some(true)), "{response:?}");
    assert_eq!(response.error_details, Some(json!({"limit": "deadline_ms", "allowed": allowed})));
    assert!(response.error.as_ref().unwrap().contains(&format!("deadline_ms: {allowed}")), "{response:?}");
}

#[tokio::test]
async fn a_run_is_cancelled_at_the_deadline() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for tool in ["waits", "deaf"] {
        fixture.create(code(tool, json!({}))).await;
    }
    let felt = Arc::new(AtomicU32::new(0));
    let feels = felt.clone();
    fake.does("waits", move |_, cancelled| {
        let feels = feels.clone();
        async move {
            cancelled.cancelled().await;
            feels.fetch_add(1, Ordering::SeqCst);
            Err(ToolFailure::new(ErrorCode::Cancelled, "stopped"))
        }
    });
    fake.does("deaf", |_, _| std::future::pending());
    let runner = fixture.start(&fake);
    let (mut deadline_ms, mut cancelled) = (1000, 0);
    loop {
        let deadline = json!({"deadline_ms": deadline_ms});
        let requests = [fixture.ask_with("waits", deadline.clone()).await, fixture.ask_with("deaf", deadline).await];
        for request in requests {
            assert_late(&fixture.answer(request).await, deadline_ms);
        }
        let [waits, deaf] = requests.map(|request| fake.begun.lock().unwrap().contains(&request));
        cancelled += u32::from(waits);
        assert_eq!(felt.load(Ordering::SeqCst), cancelled);
        if waits && deaf {
            break;
        }
        // On a busy machine, the deadline can pass before a run begins.
        deadline_ms *= 4;
        assert!(deadline_ms < PATIENCE.as_millis() as u64, "they do not run");
    }
    runner.stop().await;
}

/// An executor that enforces limits gets the remaining time, and the response says which limit was
/// reached.
#[tokio::test]
async fn a_run_gets_the_shorter_of_its_limit_and_what_is_left() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for (tool, timeout_ms) in [("long", 50_000), ("short", 40)] {
        fixture.create(code(tool, json!({"limits": {"timeout_ms": timeout_ms}}))).await;
        fake.does(tool, |call, cancelled| async move {
            tokio::select! {
                () = cancelled.cancelled() => Err(ToolFailure::new(ErrorCode::Cancelled, "stopped")),
                () = tokio::time::sleep(Duration::from_millis(call.limits.timeout_ms)) => {
                    let message = format!("the tool did not end within {} ms", call.limits.timeout_ms);
                    Err(ToolFailure::new(ErrorCode::Timeout, message))
                }
            }
        });
    }
    fixture.create(code("tells", json!({}))).await;
    fake.does("tells", |call, _| async move { Ok(json!(call.limits.timeout_ms)) });
    let runner = fixture.start(&fake);
    assert_late(&fixture.answer(fixture.ask_with("long", json!({"deadline_ms": 600})).await).await, 600);
    let response = fixture.answer(fixture.ask_with("short", json!({"deadline_ms": 3_600_000})).await).await;
    assert_eq!(response.error.as_deref(), Some("the tool did not end within 40 ms"));
    let without = fixture.answer(fixture.ask_with("tells", json!({})).await).await.output.unwrap().as_u64().unwrap();
    let with = fixture.answer(fixture.ask_with("tells", json!({"deadline_ms": 20_000})).await).await.output.unwrap();
    let with = with.as_u64().unwrap();
    assert!(with <= 20_000 && with < without, "{with} {without}");
    runner.stop().await;
}

/// No slot is free for it: whether the runner or the store responds, nothing runs.
#[tokio::test]
async fn a_request_whose_deadline_passes_in_the_queue_does_not_run() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    let gate = fake.waits("waits");
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 1, max_calls_per_tool: 1, ..options() });
    let first = fixture.ask("waits", json!({})).await;
    fake.until(|progress| progress.begun == 1).await;
    let late = fixture.ask_with("waits", json!({"deadline_ms": 50})).await;
    assert_late(&fixture.answer(late).await, 50);
    gate.add_permits(2);
    assert_eq!(fixture.answer(first).await.status, ResponseStatus::Success);
    assert_eq!(fixture.call("waits", json!({})).await.status, ResponseStatus::Success);
    assert!(!fake.begun.lock().unwrap().contains(&late));
    runner.stop().await;
}

/// The response is the failure of the attempt, since no time was left for another.
#[tokio::test]
async fn no_attempt_starts_after_the_deadline() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("flaky", json!({"limits": {"max_attempts": 5}}))).await;
    fake.does("flaky", |_, _| async { Err(ToolFailure::new(ErrorCode::ExecutionFailed, "busy").retryable(true)) });
    let runner = fixture.start(&fake);
    for calls in 1.. {
        assert!(calls < 100, "it does not run in time");
        // The first pause is at least a quarter of a second.
        let request = fixture.ask_with("flaky", json!({"deadline_ms": 240})).await;
        let response = fixture.answer(request).await;
        let runs = fake.begun.lock().unwrap().iter().filter(|begun| **begun == request).count();
        assert!(runs <= 1, "{runs}");
        if response.error.as_deref() == Some("busy") {
            assert_eq!((runs, response.is_retryable, &response.metadata["attempt"]), (1, Some(true), &json!(1)));
            break;
        }
        // On a busy machine the deadline passed before or while it ran.
        assert_late(&response, 240);
    }
    runner.stop().await;
}
