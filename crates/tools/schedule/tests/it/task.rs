//! The input, stored state and output of `schedule_task`.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{Annotations, ErrorCode, Profile, Registration, ToolSource, schema_names};
use rcrt_test_tenant::golden;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::Fixture;

/// Replaces ids, which differ in each run.
fn shown(output: &Value) -> String {
    let mut output = output.clone();
    if let Some(id) = output.get_mut("schedule_id") {
        *id = "<id>".into();
    }
    serde_json::to_string_pretty(&output).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_has_the_next_times_and_the_current_time() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    // The clocks change to summer time in the next night.
    let output = fixture.schedule("night", "30 2 * * *", json!({"timezone": "europe/berlin"})).await;
    golden(env!("CARGO_MANIFEST_DIR"), "scheduled.json", &shown(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn run_once_task_that_calls_a_tool() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let more = json!({"run_once": true, "tool": "echo", "input": {"text": "hello"}, "missed": "skip"});
    let output = fixture.schedule("later", "15 14 28 3 *", more).await;
    golden(env!("CARGO_MANIFEST_DIR"), "scheduled_once.json", &shown(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn default_zone_applies_and_is_stored() {
    let mut fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    fixture.settings.timezone = rcrt_schedule::zone("Asia/Tokyo").unwrap();
    let output = fixture.schedule("daily", "@daily", json!({})).await;
    assert_eq!(output["next_fires"][0]["at"], "2026-03-29T00:00:00+09:00");
    assert_eq!(fixture.record("daily").await.context["timezone"], "Asia/Tokyo");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_input_names_the_field() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let base = json!({"name": "n", "cron": "0 9 * * *", "description": "d"});
    let mut output = String::new();
    for wrong in [
        json!({"name": ""}),
        json!({"name": " n"}),
        json!({"name": "a\nb"}),
        json!({"name": "n".repeat(101)}),
        json!({"description": "  "}),
        json!({"description": "d".repeat(4001)}),
        json!({"cron": "0 25 * * *"}),
        json!({"cron": "* * * * * *"}),
        json!({"cron": "0,55 * * * * *"}),
        json!({"cron": "0 0 30 2 *"}),
        json!({"timezone": "Mars/Olympus"}),
        json!({"timezone": "new_york"}),
        json!({"timezone": "UTC+2"}),
        json!({"input": {"text": "hello"}}),
        json!({"tool": " "}),
        json!({"tool": "echo", "input": {"text": "x".repeat(70_000)}}),
        json!({"missed": "all"}),
        json!({"when": "tomorrow"}),
    ] {
        let mut input = base.clone();
        input.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let failure = fixture.ask("schedule_task", input).await.unwrap_err();
        assert!(!failure.is_retryable);
        let violations = &failure.details.as_ref().unwrap()["violations"];
        assert_eq!(violations.as_array().unwrap().len(), 1, "{violations}");
        let (field, message) = (violations[0]["field"].as_str().unwrap(), violations[0]["message"].as_str().unwrap());
        assert_eq!(format!("{field}: {message}"), failure.message);
        let wrong: String = wrong.to_string().chars().take(60).collect();
        writeln!(output, "{wrong}\n    {}: {}", failure.code, failure.message).unwrap();
    }
    golden(env!("CARGO_MANIFEST_DIR"), "refused.txt", &output);
    assert_eq!(fixture.records(schema_names::SCHEDULE).await.len(), 0, "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_denied_to_scheduled_calls_is_refused() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let input = |tool: &str| json!({"name": "n", "cron": "0 9 * * *", "description": "d", "tool": tool});
    let failure = fixture.ask("schedule_task", input("spawn_subagent")).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PermissionDenied);
    assert!(failure.message.contains("profile scheduled"), "{failure}");

    let mut call = fixture.call("schedule_task", input("cancel_scheduled_task"));
    call.profiles.add(Profile::Subagent);
    let failure = fixture.run(call).await.unwrap_err();
    assert!(failure.message.contains("profile subagent"), "{failure}");
    fixture.ask("schedule_task", input("cancel_scheduled_task")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_missing_from_the_catalog_is_refused() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let input = |name: &str, tool: &str| json!({"name": name, "cron": "0 9 * * *", "description": "d", "tool": tool});
    fixture.ask("schedule_task", input("before", "no_such")).await.expect("there is no catalog yet");
    let tool = Registration {
        name: "web_fetch".into(),
        description: "Fetches.".into(),
        parameters: json!({"type": "object"}),
        output_schema: None,
        source: ToolSource::Native,
        tags: Vec::new(),
        annotations: Annotations::default(),
        deprecated: None,
        tool_id: Uuid::new_v4(),
        tool_version: 1,
    };
    let last = json!({"since": "2026-01-01", "use": "web_fetch", "remove_after": "2026-03-27"});
    let removed =
        Registration { name: "fetch".into(), deprecated: serde_json::from_value(last).unwrap(), ..tool.clone() };
    fixture.offer(vec![tool, removed]).await;
    let failure = fixture.ask("schedule_task", input("late", "fetch")).await.unwrap_err();
    assert_eq!(failure.message, "tool: the tool \"fetch\" was removed after 2026-03-27; use web_fetch instead");
    let failure = fixture.ask("schedule_task", input("typo", "web_fetsh")).await.unwrap_err();
    assert_eq!(failure.message, "tool: there is no tool \"web_fetsh\"; did you mean web_fetch?");
    assert_eq!(failure.details.as_ref().unwrap()["nearest"], json!(["web_fetch"]));
    assert_eq!(failure.details.unwrap()["violations"][0]["field"], "tool");
    fixture.ask("schedule_task", input("right", "web_fetch")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_the_tool_would_refuse_is_refused() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let tool = |name: &str, parameters: Value| Registration {
        name: name.into(),
        description: "Does something.".into(),
        parameters,
        output_schema: None,
        source: ToolSource::Native,
        tags: Vec::new(),
        annotations: Annotations::default(),
        deprecated: None,
        tool_id: Uuid::new_v4(),
        tool_version: 1,
    };
    let schema = json!({"type": "object", "required": ["text"], "additionalProperties": false, "properties":
        {"text": {"type": "string"}, "times": {"type": "array", "items": {"type": "integer"}}}});
    fixture
        .offer(vec![tool("any", json!(true)), tool("echo", schema), tool("broken", json!({"type": "no type"}))])
        .await;
    let input = |tool: &str, more: Value| {
        let mut input = json!({"name": "n", "cron": "0 9 * * *", "description": "d", "tool": tool});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let paths = async |more: Value| {
        let failure = fixture.ask("schedule_task", input("echo", more)).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::InvalidArguments);
        let violations = failure.details.unwrap()["violations"].clone();
        let violation = violations[0].clone();
        assert!(failure.message.contains(violation["message"].as_str().unwrap()), "{}", failure.message);
        violations.as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // Without an input, a tool is called with {}.
    assert_eq!(paths(json!({})).await, ["input.text"]);
    assert_eq!(paths(json!({"input": {}})).await, ["input.text"]);
    assert_eq!(paths(json!({"input": {"text": 3, "times": [1, "2"]}})).await, ["input.text", "input.times[1]"]);
    assert_eq!(fixture.records(schema_names::SCHEDULE).await.len(), 0, "nothing was written");
    fixture.ask("schedule_task", input("echo", json!({"input": {"text": "hello"}}))).await.unwrap();
    for (name, tool) in [("a", "any"), ("b", "broken")] {
        fixture.ask("schedule_task", input(tool, json!({"name": name, "input": {"x": 1}}))).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn number_of_active_tasks_is_bounded() {
    let mut fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    fixture.settings.max_active = 3;
    for name in ["a", "b", "c"] {
        fixture.schedule(name, "0 9 * * *", json!({})).await;
    }
    let input = json!({"name": "d", "cron": "0 9 * * *", "description": "d"});
    let failure = fixture.ask("schedule_task", input.clone()).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted);
    assert_eq!(failure.details, Some(json!({"limit": "active_tasks", "allowed": 3})));
    fixture.ask("cancel_scheduled_task", json!({"name": "b"})).await.unwrap();
    fixture.ask("schedule_task", input).await.expect("one has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn task_with_a_used_name_is_replaced_completely() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let first = fixture.schedule("report", "0 9 * * *", json!({"tool": "echo", "input": {"text": "a"}})).await;
    assert_eq!(first["action"], "created");
    let more = json!({"description": "Another one.", "run_once": true, "timezone": "Europe/Berlin", "missed": "skip"});
    let second = fixture.schedule("report", "30 18 29 3 *", more).await;
    assert_eq!(second["action"], "replaced");
    assert_eq!(second["schedule_id"], first["schedule_id"]);
    golden(env!("CARGO_MANIFEST_DIR"), "replaced.json", &shown(&second));
    let record = fixture.record("report").await;
    assert_eq!(record.description.as_deref(), Some("Another one."));
    for (field, value) in [
        ("cron", json!("30 18 29 3 *")),
        ("description", json!("Another one.")),
        ("run_once", json!(true)),
        ("timezone", json!("Europe/Berlin")),
        ("missed", json!("skip")),
    ] {
        assert_eq!(record.context[field], value, "{field}");
    }
    assert!(!record.context.contains_key("tool") && !record.context.contains_key("input"), "{:?}", record.context);
    fixture.ask("cancel_scheduled_task", json!({"name": "report"})).await.unwrap();
    let again = fixture.schedule("report", "0 9 * * *", json!({})).await;
    assert_eq!(again["action"], "created", "the task of this name had ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_new_times_fire_after_a_replacement() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("moved", "0 12 * * *", json!({})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.schedule("moved", "0 13 * * *", json!({})).await;
    fixture.clock.set("2026-03-01T13:30:00Z");
    watch.fires(1).await;
    running.stop().await;
    assert_eq!(fixture.fired().await, ["2026-03-01T13:00:00Z"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn due_fire_survives_a_replacement_with_the_same_times() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("daily", "0 12 * * *", json!({})).await;
    fixture.clock.set("2026-03-01T15:00:00Z");
    fixture.schedule("daily", "0 12 * * *", json!({"description": "Said better."})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    watch.fires(1).await;
    running.stop().await;
    assert_eq!(fixture.fired().await, ["2026-03-01T12:00:00Z"]);
    let record = fixture.records(schema_names::SCHEDULE_FIRED).await.remove(0);
    assert_eq!(record.context["description"], "Said better.");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_cannot_cancel_replace_only_their_own_tasks() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    fixture.schedule("of main", "0 9 * * *", json!({})).await;
    let wanted = |name: &str| {
        let mut call = fixture.call("schedule_task", json!({"name": name, "cron": "0 10 * * *", "description": "d"}));
        call.profiles.add(Profile::Subagent);
        call
    };
    let failure = fixture.run(wanted("of main")).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PermissionDenied);
    assert!(failure.message.starts_with("name: there is already a task \"of main\""), "{failure}");
    assert_eq!(fixture.record("of main").await.context["cron"], "0 9 * * *");
    assert_eq!(fixture.run(wanted("its own")).await.unwrap()["action"], "created");
    assert_eq!(fixture.run(wanted("its own")).await.unwrap()["action"], "replaced");
    let mut other = wanted("its own");
    other.request.agent_id = Some(Uuid::new_v4());
    assert_eq!(fixture.run(other).await.unwrap_err().code, ErrorCode::PermissionDenied);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_for_one_name_share_one_record() {
    let fixture = Arc::new(Fixture::at("2026-03-28T12:00:00Z").await);
    // The second round finds the record of the first round; the third finds it deleted.
    for round in 0..3 {
        let asked = (0..8).map(|asker| {
            let fixture = fixture.clone();
            tokio::spawn(async move {
                let input = json!({"name": "wanted", "cron": "0 9 * * *", "description": format!("For {asker}.")});
                fixture.ask("schedule_task", input).await
            })
        });
        let mut created = 0;
        for answer in asked.collect::<Vec<_>>() {
            let output = answer.await.unwrap().unwrap();
            created += usize::from(output["action"] == "created");
        }
        let records = fixture.records(schema_names::SCHEDULE).await;
        assert_eq!((created, records.len()), (1, 1), "round {round}");
        fixture.ask("cancel_scheduled_task", json!({"name": "wanted"})).await.unwrap();
        if round == 1 {
            fixture.store().delete(records[0].id, None).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn task_can_fire_every_second_if_configured() {
    let mut fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.settings.least_distance = Duration::from_secs(1);
    fixture.schedule("tick", "* * * * * *", json!({})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    for second in 1..=5 {
        fixture.clock.set(&format!("2026-03-01T00:00:0{second}Z"));
        watch.fires(second).await;
    }
    running.stop().await;
    let times: Vec<String> = (1..=5).map(|second| format!("2026-03-01T00:00:0{second}Z")).collect();
    assert_eq!(fixture.fired().await, times);
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_request_creates_no_second_task() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let input = json!({"name": "once only", "cron": "0 9 * * *", "description": "d"});
    let call = fixture.call("schedule_task", input);
    let first = fixture.run(call.clone()).await.unwrap();
    assert_eq!(fixture.run(call.clone()).await.unwrap(), first);
    let replacing = fixture.call("schedule_task", call.input.clone());
    let second = fixture.run(replacing.clone()).await.unwrap();
    assert_eq!(second["action"], "replaced");
    assert_eq!(fixture.run(replacing).await.unwrap(), second);
}
