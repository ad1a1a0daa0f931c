use std::time::Duration;

use rcrt_breadcrumb::{CallState, ErrorCode, ResponseStatus};
use rcrt_runner::RunnerOptions;
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, code, options};

#[tokio::test]
async fn running_calls_finish_before_the_runner_stops_and_queued_ones_stay() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    let gate = fake.waits("waits");
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 1, ..options() });
    let first = fixture.ask("waits", json!({})).await;
    fake.until(|progress| progress.begun == 1).await;
    let second = fixture.ask("waits", json!({})).await;
    runner.request_stop();
    gate.add_permits(1);
    runner.stop().await;
    assert_eq!(fixture.answer(first).await.status, ResponseStatus::Success);
    assert_eq!(fixture.person.call(second).await.unwrap().state, CallState::Queued);
}

#[tokio::test]
async fn calls_that_outlast_the_drain_are_stopped_or_left_to_another_runner() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("careful", json!({}))).await;
    fixture.create(code("again", json!({"limits": {"max_attempts": 2}}))).await;
    let _never = (fake.waits("careful"), fake.waits("again"));
    let runner = fixture.start_with(&fake, RunnerOptions { drain: Duration::from_millis(50), ..options() });
    let careful = fixture.ask("careful", json!({})).await;
    let again = fixture.ask("again", json!({})).await;
    fake.until(|progress| progress.begun == 2).await;
    runner.stop().await;
    let response = fixture.answer(careful).await;
    assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::ExecutionFailed), Some(true)));
    assert!(response.error.unwrap().contains("the runner was stopped while the tool ran"));
    assert_eq!(fixture.person.call(again).await.unwrap().state, CallState::Queued);

    let next = fixture.start(&Fake::new());
    assert_eq!(fixture.answer(again).await.status, ResponseStatus::Success);
    next.stop().await;
}
