use rcrt_breadcrumb::{CallState, ErrorCode, ResponseStatus, ToolRequest};
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, code};

#[tokio::test]
async fn a_running_call_is_cancelled_at_once() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({"limits": {"max_attempts": 3}}))).await;
    fixture.create(code("deaf", json!({}))).await;
    let _never = fake.waits("waits");
    fake.does("deaf", |_, _| std::future::pending());
    let runner = fixture.start(&fake);
    for tool in ["waits", "deaf"] {
        let request = fixture.ask(tool, json!({})).await;
        fake.until(|progress| progress.running.get(tool) == Some(&1)).await;
        fixture.person.cancel(request).await.unwrap();
        let response = fixture.answer(request).await;
        assert_eq!(response.error_code, Some(ErrorCode::Cancelled), "{tool}");
        assert_eq!(response.metadata["attempt"], 1, "a cancelled call is not tried again");
        assert_eq!(fixture.person.call(request).await.unwrap().state, CallState::Finished);
    }
    runner.stop().await;
}

#[tokio::test]
async fn deleting_a_request_cancels_its_call() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    let _never = fake.waits("waits");
    let runner = fixture.start(&fake);
    let request = fixture.ask("waits", json!({})).await;
    fake.until(|progress| progress.begun == 1).await;
    fixture.person.delete(request, None).await.unwrap();
    assert_eq!(fixture.answer(request).await.error_code, Some(ErrorCode::Cancelled));
    runner.stop().await;
}

#[tokio::test]
async fn a_new_request_that_claims_to_be_cancelled_runs() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    let mut request = ToolRequest::record("echo", json!({}), None, Some("workspace:test"));
    request.context.insert("cancel_requested".into(), json!(true));
    let request = fixture.create(request).await;
    let response = fixture.answer(request).await;
    assert_eq!((response.status, response.error_code), (ResponseStatus::Success, None));
    assert!(!fixture.person.call(request).await.unwrap().cancel_requested);
    runner.stop().await;
}
