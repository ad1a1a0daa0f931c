//! Calls with `debug`: their console lines are records while the tool runs, and their responses
//! say what they did.

use std::sync::Arc;

use rcrt_breadcrumb::{
    Breadcrumbs, Event, Identity, NewAgent, NewBreadcrumb, NewSecret, Profile, Role, StoreError, Tenancy, ToolLog,
    ToolRequest, Visibility, schema_names,
};
use rcrt_executors::{CallDebug, ToolCall};
use rcrt_sandbox::{CallObserver, ConsoleLevel, ConsoleLine, ProcessUsage};
use serde_json::{Value, json};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, code};
use crate::rights::emitter;

fn print(debug: &CallDebug, message: impl Into<String>) {
    debug.console(&ConsoleLine { level: ConsoleLevel::Info, message: message.into() });
}

fn debug_of(call: &ToolCall) -> Arc<CallDebug> {
    call.debug.clone().expect("the request has debug")
}

fn is_log(event: &Event) -> bool {
    event.schema_name.as_deref() == Some(schema_names::TOOL_LOG)
}

/// The log records of a call, in order.
async fn logs(fixture: &Fixture, request: Uuid) -> Vec<ToolLog> {
    let contexts = fixture.list(schema_names::TOOL_LOG).await.into_iter().filter_map(|row| row.context);
    let mut logs: Vec<ToolLog> = contexts.map(|context| ToolLog::from_context(&context).unwrap()).collect();
    logs.retain(|log| log.request == request);
    logs.sort_by_key(|log| (log.attempt, log.sequence));
    logs
}

fn messages(logs: &[ToolLog]) -> Vec<&str> {
    logs.iter().flat_map(|log| &log.lines).map(|line| &*line.message).collect()
}

/// Prints "first", waits, and prints "last".
fn prints_around_a_wait(fake: &Fake, tool: &str) -> Arc<Notify> {
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    fake.does(tool, move |call, _| {
        let wait = wait.clone();
        async move {
            let debug = debug_of(&call);
            print(&debug, "first");
            wait.notified().await;
            print(&debug, "last");
            Ok(json!("done"))
        }
    });
    go
}

#[tokio::test]
async fn lines_are_written_while_the_tool_runs_and_before_its_response() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("talks", json!({}))).await;
    let go = prints_around_a_wait(&fake, "talks");
    let runner = fixture.start(&fake);
    let mut record = ToolRequest::record("talks", json!({}), Some("mine"), Some("workspace:here"));
    record.context.insert("debug".into(), true.into());
    let request = fixture.create(record).await;
    let event = fixture.event(is_log).await;
    let log = ToolLog::from_context(&event.context).unwrap();
    assert_eq!((log.request, &*log.request_id, &*log.tool), (request, "mine", "talks"));
    assert_eq!((log.attempt, log.sequence, log.first_line, log.dropped), (1, 0, 0, 0));
    assert_eq!((log.lines.len(), &*log.lines[0].level, &*log.lines[0].message), (1, "info", "first"));
    assert_eq!(event.tags, ["tool:log", "request:mine", "workspace:here"]);
    let left = fixture.person.get(event.breadcrumb_id).await.unwrap().ttl.unwrap() - chrono::Utc::now();
    assert!((23..=24).contains(&left.num_hours()), "{left}");
    go.notify_one();

    let mut written = Vec::new();
    let response = fixture
        .event(|event| {
            written.extend(is_log(event).then(|| ToolLog::from_context(&event.context).unwrap()));
            event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE)
        })
        .await;
    assert_eq!(messages(&written), ["first", "last"], "the response comes after the log");
    assert_eq!((written[1].sequence, written[1].first_line), (1, 1));
    let debug = &response.context["metadata"]["debug"];
    assert_eq!(debug["log"], json!({"records": 2, "lines": 2, "dropped": 0}));
    assert_eq!(debug["timeline"], json!([]));
    runner.stop().await;
}

/// A tool that only computes runs before its request is written, but not with debug.
#[tokio::test]
async fn a_quick_call_loses_no_line_and_a_call_without_debug_has_none() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("quick", json!({}))).await;
    fake.supports_speculation.lock().unwrap().insert("quick".into());
    fake.does("quick", |call, _| async move {
        if let Some(debug) = &call.debug {
            print(debug, "here");
        }
        Ok(json!(call.debug.is_some()))
    });
    let runner = fixture.start(&fake);
    for _ in 0..20 {
        assert_eq!(fixture.call("quick", json!({})).await.output, Some(json!(false)));
        let request = fixture.ask_with("quick", json!({"debug": true})).await;
        let response = fixture.answer(request).await;
        assert_eq!(response.output, Some(json!(true)));
        assert_eq!(response.metadata["debug"]["log"]["lines"], 1);
        assert_eq!(messages(&logs(&fixture, request).await), ["here"]);
        assert_eq!(fake.begun.lock().unwrap().iter().filter(|begun| **begun == request).count(), 1);
    }
    let response = fixture.call("quick", json!({})).await;
    assert!(!response.metadata.contains_key("debug"), "{:?}", response.metadata);
    assert_eq!(fixture.list(schema_names::TOOL_LOG).await.len(), 20);
    runner.stop().await;
}

#[tokio::test]
async fn lines_have_no_secrets_and_can_be_stored() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("talks", json!({"required_secrets": ["API_KEY"]}))).await;
    let key = NewSecret { readable: true, ..NewSecret::new("API_KEY", "hunter2hunter2") };
    let secret = fixture.person.create_secret(key).await.unwrap().id;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    fake.does("talks", |call, _| async move {
        print(&debug_of(&call), "the key is hunter2hunter2, and NUL is \0");
        Ok(json!("done"))
    });
    let runner = fixture.start(&fake);
    let request = fixture.ask_with("talks", json!({"debug": true})).await;
    assert_eq!(fixture.answer(request).await.output, Some(json!("done")));
    assert_eq!(messages(&logs(&fixture, request).await), ["the key is [secret API_KEY], and NUL is \u{fffd}"]);
    runner.stop().await;
}

/// Also of the attempt after it.
#[tokio::test]
async fn a_killed_runner_leaves_the_lines_that_were_written() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("talks", json!({"limits": {"max_attempts": 2}}))).await;
    let go = prints_around_a_wait(&fake, "talks");
    let runner = fixture.start(&fake);
    let request = fixture.ask_with("talks", json!({"debug": true})).await;
    fixture.event(is_log).await;
    runner.kill().await;
    let left = logs(&fixture, request).await;
    assert_eq!((left.len(), left[0].attempt, messages(&left)), (1, 1, vec!["first"]));
    fixture.end_leases().await;
    go.notify_one();
    let runner = fixture.start(&fake);
    let response = fixture.answer(request).await;
    assert_eq!(response.metadata["attempt"], 2);
    let all = logs(&fixture, request).await;
    assert_eq!(messages(&all), ["first", "first", "last"]);
    assert!(all[1..].iter().all(|log| log.attempt == 2), "{all:?}");
    runner.stop().await;
}

/// A tool that floods its console costs few writes, and other calls go on meanwhile.
#[tokio::test]
async fn a_flood_is_bounded_counted_and_slows_no_one_down() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("floods", json!({}))).await;
    fixture.create(code("echo", json!({}))).await;
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    fake.does("floods", move |call, _| {
        let wait = wait.clone();
        async move {
            let debug = debug_of(&call);
            let mut flood = 0_u64;
            let stopped = wait.notified();
            tokio::pin!(stopped);
            while futures::FutureExt::now_or_never(stopped.as_mut()).is_none() {
                flood += 1;
                print(&debug, flood.to_string());
                tokio::task::yield_now().await;
            }
            // As the sandbox reports what its worker left out.
            debug.ended(ProcessUsage { omitted_lines: 7, ..ProcessUsage::default() });
            Ok(json!(flood + 7))
        }
    });
    let runner = fixture.start(&fake);
    let request = fixture.ask_with("floods", json!({"debug": true})).await;
    fixture.event(is_log).await;
    for _ in 0..50 {
        fixture.call("echo", json!({})).await;
    }
    // The limit of lines is reached.
    fixture.event(|event| is_log(event) && event.context["dropped"].as_u64().unwrap() > 0).await;
    go.notify_one();
    let response = fixture.answer(request).await;
    let (logs, log) = (logs(&fixture, request).await, &response.metadata["debug"]["log"]);
    let printed = response.output.unwrap().as_u64().unwrap();
    assert_eq!(log, &json!({"records": logs.len(), "lines": 1000, "dropped": printed - 1000}));
    assert!(logs.iter().all(|log| log.lines.len() <= 200), "{}", logs.len());
    let expected: Vec<String> = (1..=1000).map(|line: u64| line.to_string()).collect();
    assert_eq!(messages(&logs), expected, "in order");
    assert_eq!(logs.last().unwrap().dropped, printed - 1000);
    runner.stop().await;
}

/// Whoever can read the response can read the log: everybody, or for a private call its author.
#[tokio::test]
async fn a_log_is_seen_by_those_who_see_the_response() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("talks", json!({}))).await;
    let go = prints_around_a_wait(&fake, "talks");
    let runner = fixture.start(&fake);
    let (_, author) = emitter(&fixture).await;
    let (_, other) = emitter(&fixture).await;
    let caller = caller(&fixture).await;
    let other_caller = self::caller(&fixture).await;
    let mut latest = 0;
    for (visibility, agent, sees_other) in [
        (Visibility::Team, &author, true),
        (Visibility::Private, &author, false),
        (Visibility::Team, &caller, true),
        (Visibility::Private, &caller, false),
    ] {
        let mut record = ToolRequest::record("talks", json!({}), None, None);
        record.context.insert("debug".into(), true.into());
        let request = agent.create(NewBreadcrumb { visibility, ..record }, None).await.unwrap().id;
        let of_call = |event: &Event| event.context.get("request") == Some(&json!(request));
        let seen = fixture.event(|event| is_log(event) && of_call(event)).await;
        assert!(seen.number.0 > latest);
        latest = seen.number.0;
        // The agent that asked gets it as an event.
        let mut events = agent.events(Some(rcrt_breadcrumb::EventNumber(seen.number.0 - 1))).await.unwrap();
        let event = futures::StreamExt::next(&mut events).await.unwrap().unwrap();
        assert_eq!(event.breadcrumb_id, seen.breadcrumb_id);
        go.notify_one();
        let response = fixture.answer(request).await;
        assert_eq!(response.metadata["debug"]["log"]["lines"], 2, "{visibility:?}");
        let log = seen.breadcrumb_id;
        let response = agent.call(request).await.unwrap().response.unwrap();
        for record in [log, response] {
            assert_eq!(agent.get(record).await.unwrap().id, record);
            assert_eq!(other.get(record).await.is_ok(), sees_other, "{visibility:?}");
            assert!(matches!(other_caller.get(record).await, Err(StoreError::NotFound { .. })));
        }
    }
    // Nobody forges one.
    let forged = NewBreadcrumb {
        title: "Log of talks".into(),
        schema_name: Some(schema_names::TOOL_LOG.into()),
        ..NewBreadcrumb::default()
    };
    for agent in [&author, &caller] {
        assert!(matches!(agent.create(forged.clone(), None).await, Err(StoreError::Forbidden(_))));
    }
    runner.stop().await;
}

/// An agent that reads only its own calls.
pub async fn caller(fixture: &Fixture) -> Arc<dyn Breadcrumbs> {
    let (name, roles, profile) = (Uuid::new_v4().to_string(), vec![Role::Caller], Profile::Main);
    let agent = NewAgent { name, roles: roles.clone(), profile, tools: None };
    let agent = fixture.store.create_agent(fixture.owner, None, agent).await.unwrap().agent;
    fixture.dispatch.acting_as(Identity { owner_id: fixture.owner, agent_id: agent.id, roles, profile })
}

/// A tool that subscribes to logs would otherwise be triggered by its own.
#[tokio::test]
async fn logs_of_a_tool_do_not_trigger_it() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let follows = json!({"subscriptions": [{"schema_name": schema_names::TOOL_LOG}]});
    fixture.create(code("left", follows.clone())).await;
    fixture.create(code("right", follows)).await;
    fake.does("left", |call, _| async move {
        if let Some(debug) = &call.debug {
            print(debug, "here");
        }
        Ok(Value::Null)
    });
    let runner = fixture.start(&fake);
    let request = fixture.ask_with("left", json!({"debug": true})).await;
    fixture.answer(request).await;
    fixture.events(2, |event| event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE)).await;
    runner.stop().await;
    let requests = fixture.list(schema_names::TOOL_REQUEST).await;
    let tools: Vec<Value> = requests.into_iter().map(|row| row.context.unwrap()["tool"].clone()).collect();
    assert_eq!(tools, ["right", "left"]);
}
