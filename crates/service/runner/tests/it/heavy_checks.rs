//! Slow checks and matches, and what they must not delay. They are blocked by signals, never by
//! time.

use rcrt_breadcrumb::{ErrorCode, Event, NewBreadcrumb, ToolFailure};
use rcrt_conformance::Busy;
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::fixture::{Fixture, code};

fn large() -> Value {
    json!({"many": vec![0; 100_000]})
}

/// The validation of a tool's input took 6 s, and the call succeeded under `timeout_ms: 5000`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_count_toward_the_time_limit_of_their_call() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for (tool, timeout_ms) in [("short", 300), ("grows", 2_000), ("quick", 600_000), ("patient", 600_000)] {
        fixture.create(code(tool, json!({"limits": {"timeout_ms": timeout_ms}}))).await;
    }
    fake.does("short", |_, _| async { Ok(json!(1)) });
    fake.does("quick", |_, _| async { Ok(json!(1)) });
    fake.does("patient", |_, _| async { Ok(json!(2)) });
    fake.does("grows", |_, _| async { Ok(large()) });
    let runner = fixture.start(&fake);
    for tool in ["quick", "patient"] {
        assert_eq!(fixture.call(tool, json!({})).await.error, None);
    }
    // The runner knows these tools after a call, whether it was in time or not.
    for tool in ["short", "grows"] {
        fixture.call(tool, json!({})).await;
    }
    let busy = Busy::of(fixture.owner).await;
    let waits = fixture.ask("patient", large()).await;
    let late = fixture.call("short", large()).await;
    assert_eq!(late.error_code, Some(ErrorCode::Timeout), "{late:?}");
    assert_eq!(late.error_details, Some(json!({"limit": "timeout_ms", "allowed": 300})));
    assert!(late.error.unwrap().contains("before its input was checked"));
    // A quick check does not wait.
    assert_eq!(fixture.call("quick", json!({"n": 1})).await.output, Some(json!(1)));
    let grown = fixture.call("grows", json!({})).await;
    assert_eq!(grown.error_code, Some(ErrorCode::Timeout), "{grown:?}");
    assert!(grown.error.unwrap().contains("before its output was checked"));
    busy.end().await;
    assert_eq!(fixture.answer(waits).await.output, Some(json!(2)));
    runner.stop().await;
}

/// The check leaves the executor less than the tool's limit, which is what its author knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_after_a_slow_check_names_the_limit_of_the_tool() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("endless", json!({"limits": {"timeout_ms": 60_000}}))).await;
    fake.does("endless", |call, _| async move {
        let allowed = call.limits.timeout_ms;
        assert!(allowed < 60_000, "the check shortened the limit");
        Err(ToolFailure::new(ErrorCode::Timeout, format!("the tool did not end within {allowed} ms"))
            .with_details(json!({"limit": "timeout_ms", "allowed": allowed})))
    });
    let runner = fixture.start(&fake);
    let busy = Busy::of(fixture.owner).await;
    let asked = fixture.ask("endless", large()).await;
    Busy::wait_for(fixture.owner, 1).await;
    busy.end().await;
    let late = fixture.answer(asked).await;
    assert_eq!(late.error_code, Some(ErrorCode::Timeout), "{late:?}");
    assert_eq!(late.error.as_deref(), Some("the tool did not end within 60000 ms"));
    assert_eq!(late.error_details, Some(json!({"limit": "timeout_ms", "allowed": 60_000})));
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_subscription_matches_do_not_delay_calls() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let contains = json!({"path": "$.many", "op": "contains", "value": 1});
    fixture.create(code("follows", json!({"subscriptions": [{"context_match": [contains]}]}))).await;
    fixture.create(code("answers", json!({}))).await;
    for tool in ["follows", "answers"] {
        fake.does(tool, |_, _| async { Ok(json!(1)) });
    }
    let runner = fixture.start(&fake);
    fixture.call("answers", json!({})).await;
    fixture.call("follows", json!({})).await;
    let busy = Busy::of(fixture.owner).await;
    let mut many = vec![0; 100_000];
    many.push(1);
    let Value::Object(context) = json!({"many": many}) else { unreachable!() };
    fixture.create(NewBreadcrumb { title: "many".into(), context, ..NewBreadcrumb::default() }).await;
    Busy::wait_for(fixture.owner, 1).await;
    assert_eq!(fixture.call("answers", json!({})).await.output, Some(json!(1)));
    busy.end().await;
    // The second response: the first is from the direct call.
    let is_answer =
        |event: &Event| event.schema_name.as_deref() == Some("tool.response.v1") && event.context["tool"] == "follows";
    fixture.events(2, is_answer).await;
    runner.stop().await;
}

/// 1,500 such patterns took 2.8 GB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_whose_patterns_need_too_much_memory_is_reported() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let pattern = |n: usize| (format!("p{n}"), json!({"pattern": format!("\\p{{L}}{{20}}{n}"), "description": "text"}));
    let properties: serde_json::Map<_, _> = (0..1500).map(pattern).collect();
    fixture.create(code("costly", json!({"input_schema": {"type": "object", "properties": properties}}))).await;
    let runner = fixture.start(&fake);
    let error = fixture.event(|event| event.schema_name.as_deref() == Some("tool.error.v1")).await;
    let errors = error.context["errors"].as_array().unwrap();
    assert!(errors[0]["field"].as_str().unwrap().starts_with("input_schema.properties.p"), "{errors:?}");
    runner.stop().await;
}
