use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, ToolFailure, ToolResponse};
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, code};

const STAGES: [&str; 5] = ["queue_ms", "claim_ms", "load_ms", "run_ms", "write_ms"];

fn stages(response: &ToolResponse) -> Vec<f64> {
    let stages = response.metadata["stages"].as_object().unwrap();
    assert_eq!(stages.len(), STAGES.len(), "{stages:?}");
    STAGES.map(|stage| stages[stage].as_f64().unwrap()).to_vec()
}

#[tokio::test]
async fn a_response_has_the_duration_of_each_stage() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("slow", json!({}))).await;
    fake.does("slow", |_, _| async {
        tokio::time::sleep(Duration::from_millis(80)).await;
        Ok(json!("done"))
    });
    // The request is queued until the runner starts.
    let request = fixture.ask("slow", json!({})).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    let runner = fixture.start(&fake);
    let response = fixture.answer(request).await;
    let all = stages(&response);
    assert!(all[0] >= 50.0 && all[3] >= 80.0, "{all:?}");
    assert!(all.iter().all(|stage| *stage >= 0.0) && all[1] > 0.0 && all[2] > 0.0, "{all:?}");
    // The stages add up to at most the time between the request and the response.
    let passed = response.metadata["since_queued_ms"].as_f64().unwrap();
    // The time is rounded down to milliseconds, and read from another clock.
    assert!(all.iter().sum::<f64>() <= passed + 5.0, "{all:?} {passed}");
    runner.stop().await;
}

#[tokio::test]
async fn a_call_that_never_ran_has_no_run_time() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    let response = fixture.call("nobody", json!({})).await;
    let all = stages(&response);
    assert!(all[3] == 0.0 && all[2] > 0.0, "{all:?}");
    runner.stop().await;
}

#[tokio::test]
async fn the_queue_time_of_a_retry_excludes_the_first_attempt() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("slow", json!({"limits": {"max_attempts": 2}}))).await;
    let attempts = std::sync::atomic::AtomicU32::new(0);
    let attempts = std::sync::Arc::new(attempts);
    fake.does("slow", move |_, _| {
        let attempt = attempts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move {
            if attempt > 0 {
                return Ok(json!("done"));
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            Err(ToolFailure::new(ErrorCode::ExecutionFailed, "not yet").retryable(true))
        }
    });
    let runner = fixture.start(&fake);
    let response = fixture.call("slow", json!({})).await;
    assert_eq!(response.metadata["attempt"], 2);
    let passed = response.metadata["since_queued_ms"].as_f64().unwrap();
    assert!(stages(&response)[0] <= passed - 300.0, "{:?}", response.metadata);
    runner.stop().await;
}
