//! Progress reports of running calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use rcrt_breadcrumb::{Event, EventKind, EventNumber, NewSecret, ToolFailure, ToolRequest, schema_names};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::debug::caller;
use crate::fake::Fake;
use crate::fixture::{Fixture, PATIENCE, code};

fn is_progress(event: &Event) -> bool {
    event.schema_name.as_deref() == Some(schema_names::TOOL_PROGRESS)
}

/// Reports `told`. The tool continues when the returned `Notify` is notified.
fn reports_progress(fake: &Arc<Fake>, tool: &str, reports: Vec<(Option<f64>, String)>) -> Arc<Notify> {
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    fake.does(tool, move |call, _| {
        let (wait, reports) = (wait.clone(), reports.clone());
        async move {
            for (fraction, message) in reports {
                call.progress.report(fraction, &message);
                wait.notified().await;
            }
            Ok(json!("done"))
        }
    });
    go
}

#[tokio::test]
async fn each_report_updates_one_record_while_the_tool_runs() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("slow", json!({}))).await;
    let words = vec![(Some(0.0), "beginning".into()), (Some(0.5), "half of it".into()), (None, "nearly\nthere".into())];
    let go = reports_progress(&fake, "slow", words);
    let runner = fixture.start(&fake);
    let record = ToolRequest::record("slow", json!({}), Some("mine"), Some("workspace:here"));
    let request = fixture.create(record).await;
    let mut ids = Vec::new();
    for (version, (fraction, message)) in
        [(json!(0.0), "beginning"), (json!(0.5), "half of it"), (Value::Null, "nearly there")].into_iter().enumerate()
    {
        let event = fixture.event(|event| is_progress(event) && event.version == version as i64 + 1).await;
        let mut context = Value::Object(event.context.clone().into());
        assert!(context["timestamp"].take().is_string());
        let expected = json!({
            "request_id": "mine", "request": request, "tool": "slow", "fraction": fraction, "message": message,
            "timestamp": null,
        });
        assert_eq!(context, expected);
        assert_eq!(event.tags, ["tool:progress", "request:mine", "workspace:here"]);
        ids.push(event.breadcrumb_id);
        go.notify_one();
    }
    let response = fixture.event(|event| event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE)).await;
    assert_eq!(response.context["output"], "done");
    let listed = fixture.list(schema_names::TOOL_PROGRESS).await;
    assert_eq!((listed.len(), listed[0].version), (1, 3));
    assert!(ids.iter().all(|id| *id == listed[0].id));
    let record = fixture.person.get(listed[0].id).await.unwrap();
    let left = record.ttl.unwrap() - chrono::Utc::now();
    assert!((300..=600).contains(&left.num_seconds()), "{left}");
    runner.stop().await;
}

#[tokio::test]
async fn an_agent_that_reads_only_its_own_calls_sees_their_progress() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("slow", json!({}))).await;
    let go = reports_progress(&fake, "slow", vec![(Some(0.5), "half".into()), (Some(0.9), "nearly".into())]);
    let runner = fixture.start(&fake);
    let (caller, other) = (caller(&fixture).await, caller(&fixture).await);
    let request = caller.create(ToolRequest::record("slow", json!({}), None, None), None).await.unwrap().id;
    let mut events = caller.events(Some(EventNumber(0))).await.unwrap();
    for (version, message) in [(1, "half"), (2, "nearly")] {
        let seen = async {
            loop {
                let event = events.next().await.unwrap().unwrap();
                if is_progress(&event) {
                    return event;
                }
            }
        };
        let event = tokio::time::timeout(PATIENCE, seen).await.unwrap();
        assert_eq!((event.version, &event.context["message"]), (version, &json!(message)));
        assert_eq!(caller.get(event.breadcrumb_id).await.unwrap().id, event.breadcrumb_id);
        assert!(other.get(event.breadcrumb_id).await.is_err());
        go.notify_one();
    }
    fixture.answer(request).await;
    runner.stop().await;
}

/// Only the newest report is written, and none after the response.
#[tokio::test]
async fn a_flood_of_reports_causes_few_writes_and_none_after_the_response() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("chatty", json!({}))).await;
    fixture.create(code("echo", json!({}))).await;
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    fake.does("chatty", move |call, _| {
        let wait = wait.clone();
        async move {
            call.progress.report(Some(0.0), "first");
            wait.notified().await;
            // Long enough for hundreds of writes, if each report were written.
            let began = Instant::now();
            let mut n = 0_u32;
            while began.elapsed() < Duration::from_millis(700) {
                n += 1;
                call.progress.report(Some(0.5), &n.to_string());
                tokio::task::yield_now().await;
            }
            call.progress.report(Some(2.0), "last");
            wait.notified().await;
            for n in 0..1000 {
                call.progress.report(Some(f64::NAN), &n.to_string());
            }
            Ok(json!("done"))
        }
    });
    let runner = fixture.start(&fake);
    let request = fixture.ask("chatty", json!({})).await;
    fixture.event(|event| is_progress(event) && event.context["message"] == "first").await;
    let began = Instant::now();
    go.notify_one();
    let last = fixture.event(|event| is_progress(event) && event.context["message"] == "last").await;
    assert_eq!(last.context["fraction"], 1.0, "the fraction is at most 1");
    let most = 3 + began.elapsed().as_millis() as i64 / 250;
    assert!(last.version <= most, "{} of {most}", last.version);
    go.notify_one();
    fixture.answer(request).await;
    // Any late progress event would arrive before this one.
    fixture.call("echo", json!({})).await;
    runner.stop().await;
    let (mut answered, mut after) = (false, 0);
    let tag = rcrt_breadcrumb::ToolResponse::tag(&request.to_string());
    let marker = fixture.create(rcrt_breadcrumb::NewBreadcrumb { title: "marker".into(), ..Default::default() }).await;
    fixture
        .event(|event| {
            answered |= event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE) && event.tags.contains(&tag);
            after += usize::from(answered && is_progress(event));
            event.breadcrumb_id == marker
        })
        .await;
    assert_eq!((answered, after), (true, 0));
}

#[tokio::test]
async fn attempts_of_one_call_share_one_record() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("flaky", json!({"limits": {"max_attempts": 2}}))).await;
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    fake.does("flaky", move |call, _| {
        let wait = wait.clone();
        async move {
            call.progress.report(None, "trying");
            wait.notified().await;
            Err(ToolFailure::new(rcrt_breadcrumb::ErrorCode::ExecutionFailed, "busy").retryable(true))
        }
    });
    let runner = fixture.start(&fake);
    let request = fixture.ask("flaky", json!({})).await;
    for version in [1, 2] {
        fixture.event(|event| is_progress(event) && event.version == version).await;
        go.notify_one();
    }
    assert_eq!(fixture.answer(request).await.metadata["attempt"], 2);
    assert_eq!(fixture.list(schema_names::TOOL_PROGRESS).await.len(), 1);
    runner.stop().await;
}

#[tokio::test]
async fn a_message_is_one_short_line_without_secrets() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("talks", json!({"required_secrets": ["API_KEY"]}))).await;
    let key = NewSecret { readable: true, ..NewSecret::new("API_KEY", "hunter2hunter2") };
    let secret = fixture.person.create_secret(key).await.unwrap().id;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    let long = format!("{}hunter2hunter2", "é\n\0".repeat(300));
    let go = reports_progress(
        &fake,
        "talks",
        vec![(None, "the key is hunter2hunter2".into()), (None, long), (None, "x".repeat(1_000_000))],
    );
    let runner = fixture.start(&fake);
    let request = fixture.ask("talks", json!({})).await;
    let mut messages = Vec::new();
    for version in 1..=3 {
        let event = fixture.event(|event| is_progress(event) && event.version == version).await;
        messages.push(event.context["message"].as_str().unwrap().to_owned());
        go.notify_one();
    }
    assert_eq!(messages[0], "the key is [secret API_KEY]");
    assert_eq!(messages[1].chars().count(), 500);
    assert!(messages[1].starts_with("é  é") && messages[1].ends_with('…') && !messages[1].contains("hunter"));
    assert_eq!(messages[2], "(a message of 1000000 bytes)");
    assert!(fixture.answer(request).await.output.is_some());
    runner.stop().await;
}

/// A tool that subscribes to progress and reports its own would trigger itself forever.
#[tokio::test]
async fn progress_reports_cause_no_trigger_cycle() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let follows = json!({"subscriptions": [{"schema_name": schema_names::TOOL_PROGRESS}]});
    for tool in ["left", "right"] {
        fixture.create(code(tool, follows.clone())).await;
        fake.does(tool, |call, _| async move {
            let latest = call.breadcrumbs.latest_event().await.unwrap();
            let mut events = call.breadcrumbs.events(Some(latest)).await.unwrap();
            call.progress.report(None, "here");
            // Until it is written and its event is published.
            let is_own = |event: &Event| is_progress(event) && event.context["tool"] == *call.definition.name;
            let published = async { while !is_own(&events.next().await.unwrap().unwrap()) {} };
            tokio::time::timeout(PATIENCE, published).await.expect("the event in time");
            Ok(json!("done"))
        });
    }
    let runner = fixture.start(&fake);
    let request = fixture.ask("left", json!({})).await;
    fixture.answer(request).await;
    // left → right → left (in the chain only if it was triggered) → none.
    let requests = |count: usize| move |progress: &crate::fake::RunCounts| progress.begun >= count;
    fake.until(requests(3)).await;
    let of_right = fixture
        .event(|event| event.kind == EventKind::Created && is_progress(event) && event.context["tool"] == "right")
        .await;
    assert!(of_right.tags.contains(&"triggered:right:1".to_owned()), "{:?}", of_right.tags);
    fixture.events(3, |event| event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE)).await;
    runner.stop().await;
    assert_eq!(fixture.list(schema_names::TOOL_REQUEST).await.len(), 3);
}
