use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, MAX_RECORD_BYTES, ResponseStatus, ToolFailure, ToolRequest};
use rcrt_runner::RunnerOptions;
use serde_json::json;

use crate::fake::{Fake, event_of};
use crate::fixture::{Fixture, code, native, options};

#[tokio::test]
async fn a_request_gets_one_complete_response() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("echo", json!({}))).await;
    let options = options();
    let runner = fixture.start_with(&fake, options.clone());
    let request = ToolRequest::record("echo", json!({"n": 1}), Some("mine"), Some("workspace:here"));
    let request = fixture.create(request).await;
    let event = fixture.event(|event| event.tags.contains(&"request:mine".to_owned())).await;
    assert_eq!(event.tags, ["workspace:here", "tool:response", "request:mine"]);
    let response = rcrt_breadcrumb::ToolResponse::from_context(&event.context).unwrap();
    assert_eq!((response.status, response.request_id.as_str()), (ResponseStatus::Success, "mine"));
    assert_eq!(response.output, Some(json!({"input": {"n": 1}, "version": 1})));
    let metadata = serde_json::Value::Object(response.metadata);
    assert_eq!(metadata["attempt"], 1);
    assert_eq!(metadata["runner_id"], options.runner_id.to_string());
    assert_eq!((&metadata["tool_id"], &metadata["tool_version"]), (&json!(tool), &json!(1)));
    assert_eq!(metadata["from_executor"], true);
    let call = fixture.person.call(request).await.unwrap();
    assert_eq!((call.response, call.attempt), (Some(event.breadcrumb_id), 1));
    runner.stop().await;
    assert_eq!(fixture.list("tool.response.v1").await.len(), 1);
}

#[tokio::test]
async fn an_unknown_tool_is_refused_with_similar_names() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("calculator", json!({}))).await;
    let runner = fixture.start(&fake);
    let response = fixture.call("calculater", json!({})).await;
    assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound));
    assert_eq!(response.error.unwrap(), "there is no tool \"calculater\"; did you mean calculator?");
    assert_eq!(response.error_details.unwrap(), json!({"nearest": ["calculator"]}));
    assert_eq!(response.is_retryable, Some(false));
    runner.stop().await;
}

/// Only for tools whose code is JavaScript: other tools get the number as it is.
#[tokio::test]
async fn an_integer_that_the_code_would_get_rounded_is_refused() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("script", json!({}))).await;
    fixture.create(native("built-in", json!({}))).await;
    let runner = fixture.start(&fake);
    let rounded = json!({"order": {"ids": [1, 9_007_199_254_740_993_u64]}});
    let response = fixture.call("script", rounded.clone()).await;
    assert_eq!(response.error_code, Some(ErrorCode::InvalidArguments));
    let error = response.error.unwrap();
    assert!(error.contains("order.ids[1]: is the integer 9007199254740993, which JavaScript rounds"), "{error}");
    assert_eq!(response.error_details.unwrap()["violations"][0]["field"], "order.ids[1]");
    assert_eq!(fixture.call("script", json!({"id": 9_007_199_254_740_992_u64})).await.status, ResponseStatus::Success);
    let response = fixture.call("built-in", rounded.clone()).await;
    assert_eq!(response.output.unwrap()["input"], rounded);
    runner.stop().await;
}

#[tokio::test]
async fn invalid_input_and_output_are_refused_with_all_violations() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let schemas = json!({
        "input_schema": {
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "a number"}, "s": {"type": "string", "description": "a text"}},
            "required": ["n"],
        },
        "output_schema": {"type": "object", "properties": {"ok": {"type": "boolean", "description": "whether"}}, "required": ["ok"]},
        "examples": [{"description": "one", "input": {"n": 1}, "explanation": "one"}],
    });
    fixture.create(code("strict", schemas)).await;
    let runner = fixture.start(&fake);
    let response = fixture.call("strict", json!({"n": "one", "s": 2})).await;
    assert_eq!(response.error_code, Some(ErrorCode::InvalidArguments));
    let violations = response.error_details.unwrap()["violations"].as_array().unwrap().clone();
    let mut fields: Vec<&str> = violations.iter().map(|one| one["field"].as_str().unwrap()).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["n", "s"]);
    let error = response.error.unwrap();
    assert!(violations.iter().all(|one| error.contains(one["message"].as_str().unwrap())), "{error}");
    assert!(fake.begun.lock().unwrap().is_empty(), "nothing ran");

    let response = fixture.call("strict", json!({"n": 1})).await;
    assert_eq!(response.error_code, Some(ErrorCode::InvalidOutput));
    assert_eq!(response.error_details.unwrap()["violations"][0]["field"], "ok");
    runner.stop().await;
}

#[tokio::test]
async fn a_retryable_failure_is_retried_while_attempts_are_left() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("flaky", json!({"limits": {"max_attempts": 3}}))).await;
    fixture.create(code("hopeless", json!({"limits": {"max_attempts": 2}}))).await;
    fixture.create(code("final", json!({"limits": {"max_attempts": 3}}))).await;
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    let failure = || ToolFailure::new(ErrorCode::ExecutionFailed, "busy").retryable(true);
    fake.does("flaky", move |_, _| {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { if number < 3 { Err(failure()) } else { Ok(json!(number)) } }
    });
    fake.does("hopeless", move |_, _| async move { Err(failure()) });
    fake.does("final", |_, _| async { Err(ToolFailure::new(ErrorCode::ExecutionFailed, "no")) });
    let runner = fixture.start(&fake);

    let response = fixture.call("flaky", json!({})).await;
    assert_eq!((response.output, &response.metadata["attempt"]), (Some(json!(3)), &json!(3)));
    let response = fixture.call("hopeless", json!({})).await;
    assert_eq!((response.error.as_deref(), &response.metadata["attempt"]), (Some("busy"), &json!(2)));
    assert_eq!(response.is_retryable, Some(true));
    let response = fixture.call("final", json!({})).await;
    assert_eq!(response.metadata["attempt"], 1);
    runner.stop().await;
}

#[tokio::test]
async fn outputs_that_cannot_be_stored_become_typed_errors() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for name in ["huge", "wordy", "nul", "panics"] {
        fixture.create(code(name, json!({}))).await;
    }
    fake.does("huge", |_, _| async { Ok(json!("x".repeat(MAX_RECORD_BYTES))) });
    fake.does("wordy", |_, _| async {
        let details = json!("x".repeat(MAX_RECORD_BYTES));
        Err(ToolFailure::new(ErrorCode::ExecutionFailed, "no").with_details(details))
    });
    fake.does("nul", |_, _| async { Ok(json!({"text": "a\0b"})) });
    fake.does("panics", |_, _| async { panic!("on purpose") });
    let runner = fixture.start(&fake);
    // A result that is too large is truncated; a failure that is too large has no result to
    // truncate.
    assert_eq!(fixture.call("huge", json!({})).await.status, ResponseStatus::Success);
    let response = fixture.call("wordy", json!({})).await;
    assert_eq!(response.error_code, Some(ErrorCode::ResourceExhausted));
    assert_eq!(response.error_details.unwrap()["limit_bytes"], MAX_RECORD_BYTES);
    assert_eq!(fixture.call("nul", json!({})).await.error_code, Some(ErrorCode::InvalidOutput));
    assert_eq!(fixture.call("panics", json!({})).await.error_code, Some(ErrorCode::ExecutionFailed));
    runner.stop().await;
}

#[tokio::test]
async fn an_executor_that_exceeds_its_time_limit_is_stopped() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("endless", json!({"limits": {"timeout_ms": 10}}))).await;
    fake.does("endless", |_, _| std::future::pending());
    let runner = fixture.start_with(&fake, RunnerOptions { overtime: Duration::from_millis(10), ..options() });
    let response = fixture.call("endless", json!({})).await;
    assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::Timeout), Some(true)));
    runner.stop().await;
}

#[tokio::test]
async fn caps_hold_for_the_runner_and_for_each_tool() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(native("burner", json!({}))).await;
    fixture.create(native("waiter", json!({}))).await;
    let burner = fake.waits("burner");
    let waiter = fake.waits("waiter");
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 4, max_calls_per_tool: 3, ..options() });
    let mut requests = Vec::new();
    for _ in 0..6 {
        requests.push(fixture.ask("burner", json!({})).await);
    }
    // All that can run at once: otherwise both waiters could get slots before a burner that is not
    // claimed yet.
    fake.until(|p| p.running.get("burner") == Some(&3)).await;
    for _ in 0..2 {
        requests.push(fixture.ask("waiter", json!({})).await);
    }
    // The first waiter runs although burners were queued before it and still wait.
    fake.until(|p| p.running.get("burner") == Some(&3) && p.running.get("waiter") == Some(&1)).await;
    waiter.add_permits(2);
    fixture.answer(requests[7]).await;
    burner.add_permits(6);
    for request in requests {
        assert_eq!(fixture.answer(request).await.status, ResponseStatus::Success);
    }
    let progress = fake.progress.borrow().clone();
    assert_eq!((progress.most["burner"], progress.most_in_all), (3, 4));
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runners_share_the_calls_and_run_each_once() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(native("echo", json!({}))).await;
    let runners = [fixture.start(&fake), fixture.start(&fake)];
    let mut requests = Vec::new();
    for n in 0..60 {
        requests.push(fixture.ask("echo", json!({"n": n})).await);
    }
    for (n, request) in requests.iter().enumerate() {
        assert_eq!(fixture.answer(*request).await.output.unwrap()["input"]["n"], n);
    }
    let mut begun = fake.begun.lock().unwrap().clone();
    begun.sort_unstable();
    begun.dedup();
    assert_eq!((begun.len(), fake.progress.borrow().begun), (60, 60));
    for runner in runners {
        runner.stop().await;
    }
    assert_eq!(fixture.list("tool.response.v1").await.len(), 60);
}

/// Two tools have more long calls queued than there are slots; a later call of another tool still
/// runs.
#[tokio::test]
async fn tools_with_long_calls_never_block_another_tool() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for tool in ["burner", "other-burner", "echo"] {
        fixture.create(native(tool, json!({}))).await;
    }
    let burners = [fake.waits("burner"), fake.waits("other-burner")];
    let mut requests = Vec::new();
    for _ in 0..12 {
        requests.push(fixture.ask("burner", json!({})).await);
        requests.push(fixture.ask("other-burner", json!({})).await);
    }
    let defaults =
        RunnerOptions { max_calls: 16, max_calls_per_tool: RunnerOptions::share_of_one_tool(16), ..options() };
    let runner = fixture.start_with(&fake, defaults);
    fake.until(|progress| progress.begun == 12).await;
    for n in 0..3 {
        assert_eq!(fixture.call("echo", json!({"n": n})).await.status, ResponseStatus::Success);
    }
    assert_eq!(fake.progress.borrow().running.values().sum::<usize>(), 12, "the burners still hold their slots");
    for burner in burners {
        burner.add_permits(12);
    }
    for request in requests {
        assert_eq!(fixture.answer(request).await.status, ResponseStatus::Success);
    }
    runner.stop().await;
}

/// Fields that a caller writes beside the input reach code in the request's own event, as in RCRT.
#[tokio::test]
async fn code_receives_the_event_of_its_own_request() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("echo", json!({}))).await;
    fixture.create(native("part", json!({}))).await;
    fake.does("echo", |call, _| async move { Ok(event_of(&call)) });
    fake.does("part", |call, _| async move { Ok(json!(call.request.trigger_event.is_some())) });
    let runner = fixture.start(&fake);
    let more = json!({"config_id": "c-1", "requestedBy": "agent", "input": {"messages": ["hello"]}});
    let request = fixture.ask_with("echo", more).await;
    let event = fixture.answer(request).await.output.unwrap();
    assert_eq!(
        event["context"],
        json!({"tool": "echo", "config_id": "c-1", "requestedBy": "agent", "input": {"messages": ["hello"]}})
    );
    assert_eq!((&event["id"], &event["breadcrumb_id"]), (&json!(request), &json!(request)));
    assert_eq!((&event["type"], &event["version"]), (&json!("breadcrumb.created"), &json!(1)));
    assert_eq!(event["schema_name"], "tool.request.v1");
    assert_eq!(event["tags"], json!(["tool:request", "workspace:test"]));
    // A large input is not copied into the event.
    let request = fixture.ask_with("echo", json!({"config_id": "c-2", "input": {"text": "x".repeat(50_000)}})).await;
    let event = fixture.answer(request).await.output.unwrap();
    assert_eq!(event["context"], json!({"tool": "echo", "config_id": "c-2", "input_omitted": true}));
    // Native tools do not receive the event.
    assert_eq!(fixture.call("part", json!({})).await.output, Some(json!(false)));
    runner.stop().await;
}
