use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcrt_breadcrumb::{ErrorCode, ToolFailure, ToolResponse};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::fixture::{Fixture, code, code_context};

fn bootstrap_tool(more: Value) -> Value {
    let mut bootstrap = json!({"enabled": true});
    bootstrap.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"bootstrap": bootstrap})
}

/// Waits for a number of responses of the tool.
async fn answers(fixture: &Fixture, tool: &str, count: usize) {
    fixture
        .events(count, |event| {
            event.schema_name.as_deref() == Some("tool.response.v1") && event.context["tool"] == tool
        })
        .await;
}

async fn requests(fixture: &Fixture) -> Vec<(String, Value)> {
    let mut rows = fixture.list("tool.request.v1").await;
    rows.reverse();
    rows.iter()
        .map(|row| {
            let context = row.context.as_ref().unwrap();
            (context["tool"].as_str().unwrap().to_owned(), context["input"].clone())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_runs_once_per_version_across_runners() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("setup", bootstrap_tool(json!({"input": {"a": 1}})))).await;
    let runners = [fixture.start(&fake), fixture.start(&fake)];
    answers(&fixture, "setup", 1).await;
    for runner in runners {
        runner.stop().await;
    }
    let runner = fixture.start(&fake);
    // A later runner has handled the first tool when it bootstraps the second.
    fixture.create(code("second", bootstrap_tool(json!({"priority": 200})))).await;
    answers(&fixture, "second", 1).await;
    assert_eq!(requests(&fixture).await, [("setup".into(), json!({"a": 1})), ("second".into(), json!({}))]);
    fixture.change(id, 1, code_context("setup", bootstrap_tool(json!({"input": {"a": 2}})))).await;
    answers(&fixture, "setup", 2).await;
    assert_eq!(requests(&fixture).await.len(), 3);
    runner.stop().await;
}

#[tokio::test]
async fn higher_priority_runs_first_and_wait_for_waits_for_success() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("plain", json!({}))).await;
    fixture.create(code("last", bootstrap_tool(json!({"priority": 90, "wait_for": ["middle", "plain"]})))).await;
    fixture.create(code("middle", bootstrap_tool(json!({"priority": 70, "wait_for": ["first"]})))).await;
    fixture.create(code("first", bootstrap_tool(json!({"priority": 80})))).await;
    fixture.create(code("before", bootstrap_tool(json!({"priority": 85})))).await;
    fixture.create(code("never", bootstrap_tool(json!({"priority": 50, "wait_for": ["fails"]})))).await;
    fixture.create(code("fails", bootstrap_tool(json!({"priority": 60})))).await;
    fixture.create(code("off", json!({"bootstrap": {"enabled": false}}))).await;
    fixture.create(code("disabled", bootstrap_tool(json!({"mode": "disabled"})))).await;
    fake.does("fails", |_, _| async { Err(ToolFailure::new(ErrorCode::ExecutionFailed, "no")) });
    let gate = fake.waits("first");
    let runner = fixture.start(&fake);
    answers(&fixture, "fails", 1).await;
    gate.add_permits(1);
    answers(&fixture, "last", 1).await;
    runner.stop().await;
    let order: Vec<String> = requests(&fixture).await.into_iter().map(|(tool, _)| tool).collect();
    assert_eq!(order, ["before", "first", "fails", "middle", "last"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn continuous_runs_one_at_a_time_and_slows_down_after_failures() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("loop", bootstrap_tool(json!({"mode": "continuous"})))).await;
    let tries = Arc::new(AtomicU32::new(0));
    let counted = tries.clone();
    fake.does("loop", move |_, _| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if matches!(number, 2 | 3) {
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, "no"))
            } else {
                Ok(json!(number))
            }
        }
    });
    let runners = [fixture.start(&fake), fixture.start(&fake)];
    answers(&fixture, "loop", 6).await;
    for runner in runners {
        runner.stop().await;
    }
    assert_eq!(fake.progress.borrow().most["loop"], 1);
    let mut runs: Vec<(u64, u64)> = fixture
        .list("tool.request.v1")
        .await
        .iter()
        .map(|row| {
            let bootstrap = &row.context.as_ref().unwrap()["bootstrap"];
            (bootstrap["run"].as_u64().unwrap(), bootstrap["failures"].as_u64().unwrap())
        })
        .collect();
    runs.sort_unstable();
    assert_eq!(runs[..6], [(1, 0), (2, 0), (3, 0), (4, 1), (5, 2), (6, 0)]);
    let responses = fixture.list("tool.response.v1").await;
    let first = ToolResponse::from_context(responses.last().unwrap().context.as_ref().unwrap()).unwrap();
    assert_eq!(first.output, Some(json!(0)));
}
