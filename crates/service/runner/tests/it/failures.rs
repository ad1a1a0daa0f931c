//! The one format of failures: a code, whether a retry can help, and details.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use rcrt_breadcrumb::{CallState, ErrorCode, ResponseStatus, ToolFailure};
use rcrt_executors::{BuiltinExecutor, Executors, NativeTool, ToolCall};
use rcrt_runner::{Runner, RunnerOptions};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::fake::Fake;
use crate::fixture::{Fixture, code, native, options};

/// A tool's error code is passed on unchanged, and the call is retried exactly if a retry can help.
#[tokio::test]
async fn only_retryable_failures_are_retried() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for code_ in ErrorCode::ALL {
        for retryable in [false, true] {
            let name = format!("{code_}-{retryable}");
            fixture.create(code(&name, json!({"limits": {"max_attempts": 2}}))).await;
            fake.does(&name, move |_, _| async move {
                Err(ToolFailure::new(code_, "on purpose").with_details(json!({"why": 1})).retryable(retryable))
            });
        }
    }
    let runner = fixture.start(&fake);
    for code in ErrorCode::ALL {
        for retryable in [false, true] {
            let response = fixture.call(&format!("{code}-{retryable}"), json!({})).await;
            assert_eq!((response.status, response.error_code), (ResponseStatus::Error, Some(code)));
            assert_eq!(
                (response.error.as_deref(), &response.error_details),
                (Some("on purpose"), &Some(json!({"why": 1})))
            );
            assert_eq!(response.is_retryable, Some(retryable), "{code}");
            let attempts = if retryable && code != ErrorCode::Cancelled { 2 } else { 1 };
            assert_eq!(response.metadata["attempt"], attempts, "{code} {retryable}");
        }
    }
    // The default of a code.
    let by_itself: Vec<ErrorCode> = ErrorCode::ALL.into_iter().filter(|code| code.is_retryable()).collect();
    assert_eq!(by_itself, [ErrorCode::Timeout]);
    runner.stop().await;
}

/// Between two attempts a call is queued, and can be cancelled like any queued call.
#[tokio::test]
async fn a_call_that_waits_for_its_next_attempt_can_be_cancelled() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("flaky", json!({"limits": {"max_attempts": 5}}))).await;
    let (tries, failed) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let (counted, tell) = (tries.clone(), failed.clone());
    fake.does("flaky", move |_, cancelled| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        let tell = tell.clone();
        async move {
            if first {
                tell.notify_one();
                return Err(ToolFailure::new(ErrorCode::ExecutionFailed, "busy").retryable(true));
            }
            cancelled.cancelled().await;
            Err(ToolFailure::new(ErrorCode::Cancelled, "stopped"))
        }
    });
    let runner = fixture.start(&fake);
    let request = fixture.ask("flaky", json!({})).await;
    failed.notified().await;
    fixture.person.cancel(request).await.unwrap();
    assert_eq!(fixture.answer(request).await.error_code, Some(ErrorCode::Cancelled));
    assert_eq!(fixture.person.call(request).await.unwrap().state, CallState::Finished);
    assert!(tries.load(Ordering::SeqCst) <= 2);
    runner.stop().await;
}

#[tokio::test]
async fn a_call_that_waits_for_a_slot_is_cancelled_and_never_runs() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    let gate = fake.waits("waits");
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 1, max_calls_per_tool: 1, ..options() });
    let first = fixture.ask("waits", json!({})).await;
    fake.until(|progress| progress.begun == 1).await;
    let cancelled = fixture.ask("waits", json!({})).await;
    let deleted = fixture.ask("waits", json!({})).await;
    fixture.person.cancel(cancelled).await.unwrap();
    fixture.person.delete(deleted, None).await.unwrap();
    for request in [cancelled, deleted] {
        let response = fixture.answer(request).await;
        assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::Cancelled), Some(false)));
    }
    gate.add_permits(1);
    assert_eq!(fixture.answer(first).await.status, ResponseStatus::Success);
    runner.stop().await;
    assert_eq!(*fake.begun.lock().unwrap(), [first]);
}

struct Endless {
    began: Arc<Notify>,
    ended: Arc<Notify>,
}

struct TellsItsEnd(Arc<Notify>);

impl Drop for TellsItsEnd {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl NativeTool for Endless {
    fn name(&self) -> &'static str {
        "endless"
    }

    async fn run(&self, _: &ToolCall, _: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let _end = TellsItsEnd(self.ended.clone());
        self.began.notify_one();
        std::future::pending().await
    }
}

/// A native tool is cancelled by dropping its future: what it holds is released before the
/// response.
#[tokio::test]
async fn a_native_tool_stops_when_its_request_is_cancelled_or_deleted() {
    let fixture = Fixture::new().await;
    let record = native("endless", json!({"implementation": {"type": "builtin", "tool": "endless"}}));
    fixture.create(record).await;
    let (began, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tool: Arc<dyn NativeTool> = Arc::new(Endless { began: began.clone(), ended: ended.clone() });
    let executors = Executors::new().with_native("builtin", Arc::new(BuiltinExecutor::new().with([tool])));
    let stop = CancellationToken::new();
    let runner = tokio::spawn(Runner::new(fixture.runner.clone(), executors, options()).run(stop.clone()));

    let request = fixture.ask("endless", json!({})).await;
    began.notified().await;
    fixture.person.cancel(request).await.unwrap();
    assert_eq!(fixture.answer(request).await.error_code, Some(ErrorCode::Cancelled));
    ended.notified().await;

    let request = fixture.ask("endless", json!({})).await;
    began.notified().await;
    fixture.person.delete(request, None).await.unwrap();
    assert_eq!(fixture.answer(request).await.error_code, Some(ErrorCode::Cancelled));
    ended.notified().await;
    stop.cancel();
    runner.await.unwrap().unwrap();
}
