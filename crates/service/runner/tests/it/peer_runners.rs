//! Runners with different settings: what one lacks, another serves.

use std::time::Duration;

use rcrt_breadcrumb::{BreadcrumbListItem, ErrorCode, Event, ResponseStatus, schema_names};
use rcrt_runner::RunnerOptions;
use rcrt_test_tenant::FailingStore;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, native, options};

fn without(tool: &str) -> std::sync::Arc<Fake> {
    let fake = Fake::new();
    fake.missing_requirements.lock().unwrap().insert(tool.into(), vec!["Switch it on.".into()]);
    fake
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_left_to_the_runner_with_the_settings_for_it() {
    let (fixture, able) = (Fixture::new().await, Fake::new());
    fixture.create(native("shell", json!({}))).await;
    let first = fixture.start(&able);
    let registration = fixture.event(|event| event.schema_name.as_deref() == Some(schema_names::TOOL_RUNNER)).await;
    assert_eq!(registration.context["serves"], json!(["shell"]));
    let unable = without("shell");
    // More runners without the setting, so that one of them nearly always claims first.
    let others = [fixture.start(&unable), fixture.start(&unable), fixture.start(&unable)];
    for _ in 0..20 {
        assert_eq!(fixture.call("shell", json!({})).await.status, ResponseStatus::Success);
    }
    // Whichever runner wrote the catalog last, it lists what any runner of the tenant serves.
    assert!(unable.begun.lock().unwrap().is_empty());
    fixture.create(native("more", json!({}))).await;
    let catalog = fixture.catalog(|catalog| catalog.find("more").is_some() && catalog.find("shell").is_some()).await;
    assert!(catalog.waiting.is_empty());

    // If no runner has the setting, the call fails with the reason.
    first.stop().await;
    let response = fixture.call("shell", json!({})).await;
    assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied));
    assert_eq!(response.error_details.unwrap()["missing_requirements"], json!(["Switch it on."]));
    for runner in others {
        runner.stop().await;
    }
}

/// Its lease ends while its reports are held back. It registers again only after a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_counts_again_as_soon_as_it_reports_again() {
    let (fixture, unable) = (Fixture::new().await, without("shell"));
    fixture.create(native("shell", json!({}))).await;
    let store = FailingStore::new(fixture.runner.clone());
    let short = RunnerOptions { lease: Duration::from_secs(1), ..options() };
    let first = Running::start(store.clone(), &Fake::new(), short);
    fixture.event(|event| event.schema_name.as_deref() == Some(schema_names::TOOL_RUNNER)).await;
    let second = fixture.start(&unable);
    fixture.catalog(|catalog| catalog.find("shell").is_some()).await;
    let registration = async || {
        let records = fixture.list(schema_names::TOOL_RUNNER).await;
        let serves = |row: &&BreadcrumbListItem| row.context.as_ref().unwrap()["serves"] == json!(["shell"]);
        records.iter().find(serves).map(|row| row.id)
    };
    let registered = registration().await.unwrap();
    let paused = store.reports.close().await;
    fixture.catalog(|catalog| catalog.find("shell").is_none()).await;
    drop(paused);
    fixture.catalog(|catalog| catalog.find("shell").is_some()).await;
    assert_eq!(registration().await, Some(registered));
    first.stop().await;
    second.stop().await;
}

/// As after a crash of Postgres. The other runner has not reported since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_counts_until_its_lease_ends_although_the_table_of_runners_was_emptied() {
    let fixture = Fixture::new().await;
    fixture.create(native("shell", json!({}))).await;
    let (able, unable) = (FailingStore::new(fixture.runner.clone()), FailingStore::new(fixture.runner.clone()));
    let first = Running::start(able.clone(), &Fake::new(), options());
    fixture.event(|event| event.schema_name.as_deref() == Some(schema_names::TOOL_RUNNER)).await;
    let second = Running::start(unable.clone(), &without("shell"), options());
    assert_eq!(fixture.call("shell", json!({})).await.status, ResponseStatus::Success);
    let mut reported = unable.reported.subscribe();
    reported.wait_for(|reported| *reported > 1).await.unwrap();

    let _silent = able.reports.close().await;
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    sqlx::query("TRUNCATE runners").execute(&mut admin).await.unwrap();
    let before = *reported.borrow_and_update();
    reported.wait_for(|reported| *reported > before + 1).await.unwrap();
    for _ in 0..20 {
        assert_eq!(fixture.call("shell", json!({})).await.status, ResponseStatus::Success);
    }
    first.stop().await;
    second.stop().await;
}

/// The runner that writes RCRT's catalog lacks the setting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_compat_the_catalog_lists_what_another_runner_serves() {
    let (fixture, able) = (Fixture::new().await, Fake::new());
    fixture.create(native("shell", json!({}))).await;
    fixture.create(native("zip", json!({}))).await;
    fixture.create(native("echo", json!({}))).await;
    let first = fixture.start(&able);
    fixture.event(|event| event.schema_name.as_deref() == Some(schema_names::TOOL_RUNNER)).await;
    let second = fixture.start_with(&without("shell"), RunnerOptions { rcrt_compat: true, ..options() });
    let lists = |event: &Event, names: &[&str]| {
        let tools = event.context.get("tools").and_then(serde_json::Value::as_array);
        event.tags.contains(&"catalog:rcrt".to_owned())
            && tools
                .is_some_and(|tools| tools.iter().map(|tool| tool["name"].as_str().unwrap()).eq(names.iter().copied()))
    };
    let all = fixture.event(|event| lists(event, &["echo", "shell", "zip"])).await;

    first.stop().await;
    fixture.event(|event| event.number > all.number && lists(event, &["echo", "zip"])).await;
    second.stop().await;
}

/// Both have the settings, so each publishes that it serves the tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_without_its_secret_waits_on_runners_with_equal_settings() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(native("vault", json!({"required_secrets": ["API_KEY"]}))).await;
    let compat = || RunnerOptions { rcrt_compat: true, ..options() };
    let runners = [fixture.start_with(&fake, compat()), fixture.start_with(&fake, compat())];
    fixture.events(2, |event| event.schema_name.as_deref() == Some(schema_names::TOOL_RUNNER)).await;
    fixture.create(native("more", json!({}))).await;
    let catalog = fixture.catalog(|catalog| catalog.find("more").is_some()).await;
    assert!(catalog.find("vault").is_none() && catalog.find_waiting("vault").is_some(), "{catalog:?}");
    let is_theirs = |event: &Event| event.tags.contains(&"catalog:rcrt".to_owned()) && event.context["totalTools"] == 1;
    assert_eq!(fixture.event(is_theirs).await.context["tools"][0]["name"], "more");
    for runner in runners {
        runner.stop().await;
    }
}

/// Otherwise other runners would leave calls to it that it no longer takes.
#[tokio::test]
async fn a_runner_that_stops_while_registering_leaves_no_record_behind() {
    let fixture = Fixture::new().await;
    fixture.create(native("shell", json!({}))).await;
    let store = FailingStore::new(fixture.runner.clone());
    let answered = store.runners_created.close().await;
    let runner = Running::start(store.clone(), &Fake::new(), options());
    store.runners_created.reached().await;
    runner.request_stop();
    drop(answered);
    runner.stop().await;
    assert!(fixture.list(schema_names::TOOL_RUNNER).await.is_empty());
}

#[tokio::test]
async fn a_runner_stops_while_the_list_of_runners_hangs() {
    let fixture = Fixture::new().await;
    let store = FailingStore::new(fixture.runner.clone());
    let _never = store.runner_lists.close().await;
    let runner = Running::start(store.clone(), &Fake::new(), options());
    store.runner_lists.reached().await;
    runner.stop().await;
}

/// As the runner that runs nothing but programs in pods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_for_some_tools_takes_no_other_calls_and_writes_no_catalog() {
    let (fixture, able) = (Fixture::new().await, Fake::new());
    fixture.create(native("shell", json!({}))).await;
    fixture.create(native("echo", json!({}))).await;
    let narrow = fixture.start_with(&able, RunnerOptions { only_tools: vec!["shell".into()], ..options() });
    let older = fixture.ask("echo", json!({})).await;
    assert_eq!(fixture.call("shell", json!({})).await.status, ResponseStatus::Success);
    assert!(!able.begun.lock().unwrap().contains(&older));
    assert!(fixture.list(schema_names::TOOL_CATALOG).await.is_empty());

    let wide = fixture.start(&without("shell"));
    assert_eq!(fixture.answer(older).await.status, ResponseStatus::Success);
    fixture.catalog(|catalog| catalog.find("shell").is_some() && catalog.find("echo").is_some()).await;
    narrow.stop().await;
    wide.stop().await;
}
