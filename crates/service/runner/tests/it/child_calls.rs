//! Calls that a tool's code makes with `context.api.callTool`.

use std::sync::Arc;

use rcrt_breadcrumb::{
    Breadcrumb, Breadcrumbs, DRAFT_TAG, ErrorCode, MAX_DESCENDANTS, NewBreadcrumb, ResponseStatus, ToolFailure,
    ToolRequest, ToolResponse, Visibility, schema_names,
};
use rcrt_egress::{Egress, EgressOptions};
use rcrt_executors::{CallHostOps, ToolCall};
use rcrt_runner::RunnerOptions;
use rcrt_sandbox::{ApiCall, HostOps};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, native, options};
use crate::rights::emitter;

/// What `callTool` gets, until the call is cancelled.
async fn call_tool(
    call: &ToolCall,
    cancelled: &CancellationToken,
    tool: &str,
    input: Value,
    options: Value,
) -> Result<Value, ToolFailure> {
    call_in(&world_of(call), cancelled, tool, input, options).await
}

fn world_of(call: &ToolCall) -> CallHostOps {
    CallHostOps::new(Arc::new(Egress::new(EgressOptions::default()).unwrap()), call).unwrap()
}

async fn call_in(
    world: &CallHostOps,
    cancelled: &CancellationToken,
    tool: &str,
    input: Value,
    options: Value,
) -> Result<Value, ToolFailure> {
    tokio::select! {
        () = cancelled.cancelled() => Err(ToolFailure::new(ErrorCode::Cancelled, "stopped")),
        result = world.api(ApiCall::CallTool { tool: tool.into(), input, options }) => {
            result.map_err(|error| ToolFailure::new(ErrorCode::ExecutionFailed, error.to_string()))
        }
    }
}

/// `outer` calls what its input names and returns the result.
async fn with_outer(fixture: &Fixture, fake: &Arc<Fake>, more: Value) {
    fake.does("outer", |call, cancelled| async move {
        let (input, options) = (call.input["input"].clone(), call.input["options"].clone());
        let options = if options.is_null() { json!({}) } else { options };
        let tool = call.input["tool"].as_str().unwrap().to_owned();
        call_tool(&call, &cancelled, &tool, input, options).await
    });
    let mut changes = json!({"permissions": {"tools": true}});
    changes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fixture.create(code("outer", changes)).await;
}

fn start(fixture: &Fixture, fake: &Arc<Fake>, options: RunnerOptions, is_local: bool) -> Running {
    if is_local { fixture.start_with(fake, options) } else { Running::start(fixture.runner.clone(), fake, options) }
}

/// The one request of this tool.
async fn request_of(fixture: &Fixture, tool: &str) -> Breadcrumb {
    let event = fixture
        .event(|event| {
            event.schema_name.as_deref() == Some(schema_names::TOOL_REQUEST)
                && event.context.get("tool").is_some_and(|named| named == tool)
        })
        .await;
    fixture.person.get(event.breadcrumb_id).await.unwrap()
}

async fn ask_as(store: &Arc<dyn Breadcrumbs>, tool: &str, input: Value) -> Uuid {
    store.create(ToolRequest::record(tool, input, None, None), None).await.unwrap().id
}

fn output(response: ToolResponse) -> Value {
    response.output.unwrap_or_else(|| panic!("{:?} {:?}", response.error_code, response.error))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_gets_the_result_of_an_ordinary_call() {
    for is_local in [true, false] {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        with_outer(&fixture, &fake, json!({})).await;
        fixture.create(code("inner", json!({}))).await;
        fake.does("failing", |_, _| async {
            Err(ToolFailure::new(ErrorCode::ExecutionFailed, "it broke").with_details(json!({"n": 1})))
        });
        fixture.create(code("failing", json!({}))).await;
        let runner = start(&fixture, &fake, options(), is_local);
        let input = json!({"tool": "inner", "input": {"n": 1}});
        let outer = fixture.ask_with("outer", json!({"input": input, "session": "s1", "deadline_ms": 600_000})).await;
        let got = output(fixture.answer(outer).await);
        assert_eq!(got["output"]["input"], json!({"n": 1}));

        let child = request_of(&fixture, "inner").await;
        let parent = fixture.person.get(outer).await.unwrap();
        assert_eq!(child.context["parent"], json!(outer));
        assert_eq!((&child.context["awaited"], &child.context["session"]), (&json!(true), &json!("s1")));
        assert_eq!(child.created_by, parent.created_by);
        assert!(child.tags.contains(&"nested:1".to_owned()) && child.tags.contains(&"workspace:test".to_owned()));
        // The tool's own time is shorter than the deadline.
        assert!(child.context["deadline_ms"].as_u64().unwrap() <= 30_000, "{child:?}");
        let details = fixture.person.call_details(outer).await.unwrap();
        assert_eq!(details.children.len(), 1);
        assert_eq!(details.children[0].call.request, child.id);

        let failed = output(fixture.call("outer", json!({"tool": "failing", "input": {}})).await)["failure"].clone();
        assert_eq!((&failed["code"], &failed["message"]), (&json!("ExecutionFailed"), &json!("it broke")));
        assert_eq!((&failed["tool"], &failed["details"]), (&json!("failing"), &json!({"n": 1})));
        assert_eq!(failed["requestId"], json!(request_of(&fixture, "failing").await.id));
        let unknown = output(fixture.call("outer", json!({"tool": "nobody", "input": {}})).await);
        assert_eq!(unknown["failure"]["code"], "ToolNotFound");
        let input = json!({"tool": "failing", "input": {}});
        let debugged = fixture.ask_with("outer", json!({"input": input, "debug": true})).await;
        let steps = fixture.answer(debugged).await.metadata["debug"]["timeline"].clone();
        assert_eq!((&steps[0]["operation"], &steps[0]["outcome"]), (&json!("callTool"), &json!("ExecutionFailed")));
        for (options, problem) in [
            (json!({"timeout": 5}), "unknown field `timeout`"),
            (json!({"timeout_ms": 0}), "timeout_ms: must be a whole number from 1"),
            (json!({"max_result_chars": 1}), "max_result_chars: must be a whole number from 1000"),
        ] {
            let refused = fixture.call("outer", json!({"tool": "inner", "input": {}, "options": options})).await;
            let error = refused.error.unwrap();
            assert!(error.contains("InvalidArguments: callTool") && error.contains(problem), "{error}");
        }
        runner.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_call_makes_private_calls() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    with_outer(&fixture, &fake, json!({})).await;
    fixture.create(code("inner", json!({}))).await;
    let runner = fixture.start(&fake);
    let input = json!({"tool": "inner", "input": {}});
    let record = ToolRequest::record("outer", input, None, None);
    let outer = fixture.create(NewBreadcrumb { visibility: Visibility::Private, ..record }).await;
    output(fixture.answer(outer).await);
    assert_eq!(request_of(&fixture, "inner").await.visibility, Visibility::Private);
    runner.stop().await;
}

/// Each of these calls waits for others of its own tool, and there is one slot for all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_wait_for_calls_need_no_slot() {
    for is_local in [true, false] {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        fake.does("deep", |call, cancelled| async move {
            let depth = call.input["depth"].as_u64().unwrap();
            if depth == 0 {
                return Ok(json!(0));
            }
            let below = call_tool(&call, &cancelled, "deep", json!({"depth": depth - 1}), json!({})).await?;
            Ok(json!(1 + below["output"].as_u64().unwrap_or_else(|| panic!("{below}"))))
        });
        fixture
            .create(code("deep", json!({"permissions": {"tools": ["deep"]}, "limits": {"timeout_ms": 600_000}})))
            .await;
        let one = RunnerOptions { max_calls: 1, max_calls_per_tool: 1, ..options() };
        let runner = start(&fixture, &fake, one, is_local);
        // On a busy machine all calls of a tree wait before the first answer is seen: so they are
        // as many as can wait at the same time.
        let (trees, depth) = (2, RunnerOptions::max_parked(1) / 2);
        let mut asked = Vec::new();
        for _ in 0..trees {
            asked.push(fixture.ask("deep", json!({"depth": depth})).await);
        }
        for request in asked {
            assert_eq!(output(fixture.answer(request).await), json!(depth));
        }
        runner.stop().await;
    }
}

/// Calls that make calls wait in the queue before the places to wait are used up, and others run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_callers_leave_places_to_wait_for_the_calls_below_others() {
    for is_local in [true, false] {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        with_outer(&fixture, &fake, json!({"limits": {"timeout_ms": 600_000}})).await;
        let http = json!({"implementation": {"type": "http", "url": "https://api.example.com/"}});
        fixture.create(native("slow", http)).await;
        fixture.create(code("quick", json!({}))).await;
        let gate = fake.waits("slow");
        let one = RunnerOptions { max_calls: 1, max_calls_per_tool: 1, ..options() };
        let half = RunnerOptions::max_parked(1) / 2;
        let runner = start(&fixture, &fake, one, is_local);
        fixture.catalog(|catalog| catalog.tools.len() == 3).await;
        let mut asked = Vec::new();
        for _ in 0..3 * half {
            asked.push(fixture.ask("outer", json!({"tool": "slow", "input": {}})).await);
        }
        fake.until(|progress| progress.running.get("slow").is_some_and(|running| *running >= half)).await;
        assert_eq!(fixture.call("quick", json!({})).await.status, ResponseStatus::Success);
        gate.add_permits(3 * half);
        for request in asked {
            assert_eq!(output(fixture.answer(request).await)["output"], "done");
        }
        runner.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_calls_itself_without_end_is_stopped() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fake.does(
        "again",
        |call, cancelled| async move { call_tool(&call, &cancelled, "again", json!({}), json!({})).await },
    );
    fake.does("native", |call, _| async move { rcrt_executors::call_tool(&call, "native", json!({})).await });
    for tool in ["again", "native"] {
        fixture.create(code(tool, json!({"permissions": {"tools": [tool]}}))).await;
    }
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 1, max_calls_per_tool: 1, ..options() });
    let ended = output(fixture.call("again", json!({})).await);
    assert!(ended.to_string().contains("nested 8 deep"), "{ended}");
    assert_eq!(fake.progress.borrow().begun, 9);
    let native = fixture.call("native", json!({})).await;
    assert_eq!(native.error_code, Some(ErrorCode::ResourceExhausted), "{:?}", native.error);
    runner.stop().await;
}

/// The store counts all calls below a request. Here one less than the limit was made before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_of_calls_is_limited_in_total() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let gate = fake.waits("slow");
    fake.does("outer", |call, cancelled| async move {
        let world = world_of(&call);
        call_in(&world, &cancelled, "slow", json!({}), json!({})).await?;
        call_in(&world, &cancelled, "inner", json!({}), json!({})).await?;
        let call = ApiCall::CallTool { tool: "inner".into(), input: json!({}), options: json!({}) };
        let refused = world.api(call).await.unwrap_err();
        Ok(json!([refused.name, refused.reached, refused.message]))
    });
    for tool in ["outer", "inner", "slow"] {
        fixture.create(code(tool, json!({"permissions": {"tools": true}}))).await;
    }
    let runner = fixture.start(&fake);
    let outer = fixture.ask("outer", json!({})).await;
    fake.until(|progress| progress.running.get("slow") == Some(&1)).await;
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    sqlx::query("UPDATE calls SET descendants = $2 WHERE request = $1")
        .bind(outer)
        .bind(i32::try_from(MAX_DESCENDANTS).unwrap() - 1)
        .execute(&mut admin)
        .await
        .unwrap();
    gate.add_permits(1);
    let got = output(fixture.answer(outer).await);
    assert_eq!((&got[0], &got[1]), (&json!("ResourceExhausted"), &json!({"limit": "descendants", "allowed": 1000})));
    assert!(got[2].as_str().unwrap().contains("1000 calls have been made below"), "{got}");
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_waits_for_ends_with_it() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    with_outer(&fixture, &fake, json!({})).await;
    let _never = fake.waits("inner");
    // It returns without waiting for what it called.
    fake.does("hasty", |call, _| async move {
        let never = CancellationToken::new();
        let asked = call_tool(&call, &never, "inner", json!({}), json!({}));
        let begun = async {
            while call
                .breadcrumbs
                .list(&rcrt_breadcrumb::BreadcrumbQuery::of_schema("tool.request.v1"))
                .await
                .unwrap()
                .len()
                < 2
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            result = asked => result,
            () = begun => Ok(json!("early")),
        }
    });
    for tool in ["inner", "hasty"] {
        fixture.create(code(tool, json!({"permissions": {"tools": true}}))).await;
    }
    let runner = fixture.start(&fake);
    let hasty = fixture.call("hasty", json!({})).await;
    assert_eq!(hasty.output, Some(json!("early")));
    let left = request_of(&fixture, "inner").await.id;
    assert_eq!(fixture.answer(left).await.error_code, Some(ErrorCode::Cancelled));

    let outer = fixture.ask("outer", json!({"tool": "inner", "input": {"second": true}})).await;
    fake.until(|progress| progress.running.get("inner") == Some(&1)).await;
    fixture.person.cancel(outer).await.unwrap();
    assert_eq!(fixture.answer(outer).await.error_code, Some(ErrorCode::Cancelled));
    let children = fixture.person.call_details(outer).await.unwrap().children;
    assert_eq!(fixture.answer(children[0].call.request).await.error_code, Some(ErrorCode::Cancelled));

    let limited = json!({"tool": "inner", "input": {}, "options": {"timeout_ms": 50}});
    let late = output(fixture.call("outer", limited).await);
    assert_eq!(late["failure"]["code"], "Timeout", "{late}");
    runner.stop().await;
}

/// A second attempt gets the result of a call that the first one made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_attempt_does_not_repeat_a_call_that_succeeded() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let gate = fake.waits("slow");
    fake.does("outer", |call, cancelled| async move {
        let world = world_of(&call);
        let first = call_in(&world, &cancelled, "inner", json!({"n": 1}), json!({})).await?;
        let again = call_in(&world, &cancelled, "inner", json!({"n": 1}), json!({})).await?;
        call_in(&world, &cancelled, "slow", json!({}), json!({})).await?;
        Ok(json!([first["output"], again["output"]]))
    });
    let changes = json!({"permissions": {"tools": true}, "limits": {"max_attempts": 2}});
    for tool in ["outer", "inner", "slow"] {
        fixture.create(code(tool, changes.clone())).await;
    }
    let runner = fixture.start(&fake);
    let outer = fixture.ask("outer", json!({})).await;
    fake.until(|progress| progress.running.get("slow") == Some(&1)).await;
    runner.kill().await;
    fixture.end_leases().await;
    fixture.store.rescue().await.unwrap();
    gate.add_permits(2);
    let runner = fixture.start(&fake);
    let response = fixture.answer(outer).await;
    assert_eq!(response.metadata["attempt"], 2);
    let got = output(response);
    assert_eq!((&got[0]["input"], &got[1]["input"]), (&json!({"n": 1}), &json!({"n": 1})));
    // Two of `outer`, two of `inner`, and two of `slow`, whose runner was lost too.
    assert_eq!(fake.begun.lock().unwrap().len(), 6);
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_calls_what_its_permissions_and_its_caller_allow() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    with_outer(&fixture, &fake, json!({"permissions": {"tools": ["sketch", "inner"]}})).await;
    fixture.create(code("inner", json!({}))).await;
    let ((_, author), (_, other)) = (emitter(&fixture).await, emitter(&fixture).await);
    let mut sketch = code("sketch", json!({}));
    sketch.tags.push(DRAFT_TAG.to_owned());
    author.create(sketch, None).await.unwrap();
    let runner = fixture.start(&fake);
    let answer = |store: Arc<dyn Breadcrumbs>, tool: &'static str| {
        let fixture = &fixture;
        async move { fixture.answer(ask_as(&store, "outer", json!({"tool": tool, "input": {}})).await).await }
    };
    let refused = answer(other.clone(), "other").await;
    assert_eq!(refused.status, ResponseStatus::Error);
    assert!(refused.error.unwrap().contains("\"other\" is not among the tools in the tool's permissions.tools"));
    assert_eq!(output(answer(other.clone(), "inner").await)["output"]["version"], 1);
    // The draft is its author's, whoever wrote the tool that calls it.
    assert_eq!(output(answer(author, "sketch").await)["output"]["version"], 1);
    assert_eq!(output(answer(other, "sketch").await)["failure"]["code"], "ToolNotFound");
    let bound = json!({"tool": "inner", "input": {}});
    let mut record = ToolRequest::record("outer", bound, None, None);
    record.tags.push("profile:scheduled".into());
    let id = fixture.create(record).await;
    output(fixture.answer(id).await);
    let child = fixture.person.call_details(id).await.unwrap().children[0].call.request;
    assert!(fixture.person.get(child).await.unwrap().tags.contains(&"profile:scheduled".to_owned()));
    runner.stop().await;
}
