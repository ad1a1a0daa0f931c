//! The output of `list_scheduled_tasks` and `cancel_scheduled_task`.

use rcrt_breadcrumb::{ErrorCode, schema_names};
use rcrt_schedule::Status;
use rcrt_test_tenant::golden;
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn list_shows_next_times_and_ended_tasks() {
    let mut fixture = Fixture::at("2026-10-24T12:00:00Z").await;
    fixture.settings.timezone = rcrt_schedule::zone("Europe/Berlin").unwrap();
    fixture.schedule("nightly", "30 2 * * *", json!({})).await;
    fixture.schedule("half-hourly", "*/30 * * * *", json!({"timezone": "America/New_York", "missed": "skip"})).await;
    fixture
        .schedule("call", "45 30 9 1 * *", json!({"tool": "web_fetch", "input": {"url": "https://example.com"}}))
        .await;
    fixture.schedule("dropped", "0 0 1 1 *", json!({})).await;
    fixture.schedule("done soon", "5 14 * * *", json!({"run_once": true})).await;
    fixture.ask("cancel_scheduled_task", json!({"name": "dropped"})).await.unwrap();
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.clock.set("2026-10-24T12:05:10Z");
    watch.until(|schedule| schedule.status == Status::Done).await;
    running.stop().await;

    let listed = fixture.ask("list_scheduled_tasks", json!({"include_ended": true})).await.unwrap();
    golden(env!("CARGO_MANIFEST_DIR"), "listed.json", &serde_json::to_string_pretty(&listed).unwrap());
    golden(env!("CARGO_MANIFEST_DIR"), "listed.md", listed["table"].as_str().unwrap());
    let active = fixture.ask("list_scheduled_tasks", json!({})).await.unwrap();
    assert_eq!(active["tasks"].as_array().unwrap().len(), 3);
    let one = fixture.ask("list_scheduled_tasks", json!({"name": "done soon"})).await.unwrap();
    assert_eq!((&one["tasks"][0]["status"], &one["tasks"][0]["fires"]), (&json!("done"), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_list_shows_the_current_time() {
    let mut fixture = Fixture::at("2026-07-01T12:00:00Z").await;
    fixture.settings.timezone = rcrt_schedule::zone("Asia/Kathmandu").unwrap();
    let listed = fixture.ask("list_scheduled_tasks", json!({})).await.unwrap();
    assert_eq!(
        listed,
        json!({
            "table": "Current time: 2026-07-01T17:45:00+05:45 (Asia/Kathmandu); 2026-07-01T12:00:00Z in UTC.\n\n\
                There are no scheduled tasks.",
            "now": {"utc": "2026-07-01T12:00:00Z", "local": "2026-07-01T17:45:00+05:45", "timezone": "Asia/Kathmandu"},
            "tasks": []
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn task_text_cannot_break_the_table() {
    let fixture = Fixture::at("2026-07-01T12:00:00Z").await;
    let more = json!({"description": format!("a | b \\ c\n\n| d |\n{}", "x".repeat(500))});
    fixture.schedule("pipe|d", "0 9 * * *", more).await;
    let listed = fixture.ask("list_scheduled_tasks", json!({})).await.unwrap();
    let lines: Vec<&str> = listed["table"].as_str().unwrap().lines().collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert!(
        lines[4].starts_with("| pipe\\|d | 0 9 * * * | UTC | 2026-07-02T09:00:00+00:00 (in 21 h) | – | no |"),
        "{}",
        lines[4]
    );
    assert!(lines[4].contains("| a \\| b \\\\ c \\| d \\| xxx"), "{}", lines[4]);
    assert!(lines[4].chars().count() < 260, "{}", lines[4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_twice_succeeds() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    fixture.schedule("reminder", "0 9 * * *", json!({})).await;
    let cancelled = fixture.ask("cancel_scheduled_task", json!({"name": "reminder"})).await.unwrap();
    golden(env!("CARGO_MANIFEST_DIR"), "cancelled.json", &serde_json::to_string_pretty(&cancelled).unwrap());
    assert_eq!(fixture.ask("cancel_scheduled_task", json!({"name": "reminder"})).await.unwrap(), cancelled);
    assert!(fixture.record("reminder").await.ttl.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_name_suggests_similar_names() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let cancel = async |name: &str| fixture.ask("cancel_scheduled_task", json!({"name": name})).await.unwrap_err();
    assert_eq!(cancel("remind").await.message, "name: there is no scheduled task \"remind\", and no others exist");
    fixture.schedule("reminder", "0 9 * * *", json!({})).await;
    let failure = cancel("remindr").await;
    assert_eq!(failure.code, ErrorCode::InvalidArguments);
    assert_eq!(failure.message, "name: there is no scheduled task \"remindr\"; did you mean reminder?");
    assert_eq!(cancel("backup").await.message, "name: there is no scheduled task \"backup\"; there are: reminder");
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_match_the_seed_schemas() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    let input = json!({"name": "n", "cron": "0 9 * * *", "description": "d", "tool": "echo", "run_once": true});
    for (tool, input) in [
        ("schedule_task", input),
        ("list_scheduled_tasks", json!({})),
        ("cancel_scheduled_task", json!({"name": "n"})),
        ("list_scheduled_tasks", json!({"include_ended": true})),
    ] {
        let output = fixture.ask(tool, input.clone()).await.unwrap();
        let definition = rcrt_test_tenant::seeded(tool);
        for (schema, value) in [(&definition.input_schema, &input), (&definition.output_schema, &output)] {
            let wrong = rcrt_validate::Schema::compile(schema).unwrap().check(value);
            assert!(wrong.is_empty(), "{tool}: {wrong:?}");
        }
    }
    assert_eq!(fixture.records(schema_names::SCHEDULE).await.len(), 1);
}
