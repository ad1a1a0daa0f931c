//! The author of a change to a tool gets the new version on the next call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use rcrt_breadcrumb::{
    BreadcrumbListItem, Catalog, ErrorCode, Event, NewSecret, ResponseStatus, ToolResponse, schema_names,
};
use rcrt_runner::RunnerOptions;
use rcrt_test_tenant::FailingStore;
use serde_json::json;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, PATIENCE, Running, code, code_context, native, options};

/// The call's response, from a stream that goes on: a thousand streams from the start are slow.
async fn answer(
    events: &mut (impl futures::Stream<Item = Result<Arc<Event>, rcrt_breadcrumb::StoreError>> + Unpin),
    request: Uuid,
) -> ToolResponse {
    let tag = ToolResponse::tag(&request.to_string());
    let found = async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE) && event.tags.contains(&tag) {
                return ToolResponse::from_context(&event.context).unwrap();
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the response in time")
}

/// Whether the writes are those of the runner's own process.
#[derive(Clone, Copy, PartialEq)]
enum Process {
    Own,
    Other,
}

async fn change_and_call(fixture: &Fixture, process: Process, pairs: i64) {
    let id = fixture.create(code("echo", json!({}))).await;
    let latest = fixture.person.latest_event().await.unwrap();
    let mut events = fixture.person.events(Some(latest)).await.unwrap();
    for version in 1..=pairs {
        change(fixture, process, id, version).await;
        let response = answer(&mut events, fixture.ask("echo", json!({})).await).await;
        assert_eq!(response.output.unwrap()["version"], version + 1);
    }
}

/// Changes the tool at this version.
async fn change(fixture: &Fixture, process: Process, id: Uuid, version: i64) {
    let begun = Instant::now();
    fixture.change(id, version, code_context("echo", json!({"description": format!("change {version}")}))).await;
    wait_if_late(fixture, process, id, begun).await;
}

/// A write waits a limited time for the runners of other processes, which on a busy machine can
/// take longer. Waits for them if a write that began at this time no longer did.
async fn wait_if_late(fixture: &Fixture, process: Process, id: Uuid, begun: Instant) {
    if process == Process::Own || begun.elapsed() < rcrt_breadcrumb::RUNNERS_WAIT {
        return;
    }
    let late = async {
        while !fixture.person.runners_behind(id).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, late).await.expect("the runners follow");
}

async fn delete_and_call(fixture: &Fixture, process: Process, pairs: usize) {
    let latest = fixture.person.latest_event().await.unwrap();
    let mut events = fixture.person.events(Some(latest)).await.unwrap();
    for number in 0..pairs {
        let name = format!("gone{number}");
        let begun = Instant::now();
        let id = fixture.create(code(&name, json!({}))).await;
        wait_if_late(fixture, process, id, begun).await;
        let response = answer(&mut events, fixture.ask(&name, json!({})).await).await;
        assert_eq!(response.status, ResponseStatus::Success);
        let begun = Instant::now();
        fixture.person.delete(id, None).await.unwrap();
        wait_if_late(fixture, process, id, begun).await;
        let response = answer(&mut events, fixture.ask(&name, json!({})).await).await;
        assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound), "{response:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_changes_in_one_process_reach_the_next_call() {
    let fixture = Fixture::new().await;
    let runner = fixture.start(&Fake::new());
    change_and_call(&fixture, Process::Own, 800).await;
    delete_and_call(&fixture, Process::Own, 200).await;
    runner.stop().await;
}

/// They share only the database, as runners of other processes do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_changes_reach_the_next_call_on_any_of_three_runners() {
    let fixture = Fixture::new().await;
    let start = || Running::start(fixture.runner.clone(), &Fake::new(), options());
    let runners = [start(), start(), start()];
    change_and_call(&fixture, Process::Other, 800).await;
    delete_and_call(&fixture, Process::Other, 200).await;
    for runner in runners {
        runner.stop().await;
    }
}

/// A runner that does not follow the events delays the write by a second, and is named.
#[tokio::test]
async fn a_write_does_not_wait_forever_for_a_runner_that_is_behind() {
    let fixture = Fixture::new().await;
    let id = fixture.create(code("echo", json!({}))).await;
    let (store, runner_id) = (FailingStore::new(fixture.runner.clone()), Uuid::new_v4());
    let runner = Running::start(store.clone(), &Fake::new(), RunnerOptions { runner_id, ..options() });
    assert_eq!(fixture.call("echo", json!({})).await.output.unwrap()["version"], 1);
    let held = store.events.close().await;
    let begun = Instant::now();
    fixture.change(id, 1, code_context("echo", json!({"description": "changed"}))).await;
    assert!(begun.elapsed() >= rcrt_breadcrumb::RUNNERS_WAIT);
    assert_eq!(fixture.person.runners_behind(id).await.unwrap(), [runner_id]);
    drop(held);
    change(&fixture, Process::Other, id, 2).await;
    assert_eq!(fixture.person.runners_behind(id).await.unwrap(), [] as [Uuid; 0]);
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_runner_stops_counting_when_its_lease_ends() {
    let fixture = Fixture::new().await;
    fixture.create(native("shell", json!({}))).await;
    let killed = Uuid::new_v4();
    let first = RunnerOptions { runner_id: killed, lease: Duration::from_secs(15), ..options() };
    let first = Running::start(fixture.runner.clone(), &Fake::new(), first);
    fixture.event(|event| event.schema_name.as_deref() == Some(schema_names::TOOL_RUNNER)).await;
    let unable = Fake::new();
    unable.missing_requirements.lock().unwrap().insert("shell".into(), vec!["Switch it on.".into()]);
    let second = Running::start(fixture.runner.clone(), &unable, options());
    fixture.create(native("more", json!({}))).await;
    fixture.catalog(|catalog| catalog.find("more").is_some() && catalog.find("shell").is_some()).await;

    first.kill().await;
    let response = fixture.call("shell", json!({})).await;
    assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{response:?}");
    // The record of the killed runner is still stored.
    let records = fixture.list(schema_names::TOOL_RUNNER).await;
    let is_of_killed = |row: &BreadcrumbListItem| row.context.as_ref().unwrap()["runner_id"] == killed.to_string();
    assert!(records.iter().any(is_of_killed), "its time to live is longer than its lease");
    fixture.catalog(|catalog| catalog.find_waiting("shell").is_some()).await;
    second.stop().await;
}

/// By the signals for each of them: the check of all tools is off here. The intervals of the
/// signals are constants of `coordination/reporter.rs` and `registry/readiness.rs`.
#[tokio::test]
async fn the_catalog_follows_secrets_grants_and_settings() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("vault", json!({"required_secrets": ["API_KEY"]}))).await;
    fixture.create(native("shell", json!({}))).await;
    fake.missing_requirements.lock().unwrap().insert("shell".into(), vec!["Switch it on.".into()]);
    let rarely = RunnerOptions { readiness: Duration::from_hours(1), ..options() };
    let runner = Running::start(fixture.runner.clone(), &fake, rarely);
    fixture.catalog(|catalog| catalog.find_waiting("vault").is_some()).await;
    // The check of all tools would take an hour.
    let until = async |wanted: &str, offered: bool| {
        // The newest catalog: an older one may have been the same.
        let mut events = fixture.person.events(None).await.unwrap();
        let becomes = async {
            while Catalog::read(&*fixture.person).await.unwrap().unwrap().find(wanted).is_some() != offered {
                events.next().await.unwrap().unwrap();
            }
        };
        let waited = tokio::time::timeout(PATIENCE, becomes).await;
        waited.unwrap_or_else(|_| panic!("{wanted}: never offered: {offered}"));
    };
    let secret = NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("API_KEY", "hunter2hunter2") };
    let secret = fixture.person.create_secret(secret).await.unwrap().id;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    until("vault", true).await;
    fixture.person.revoke_secret(secret, tool).await.unwrap();
    until("vault", false).await;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    until("vault", true).await;
    fixture.person.delete_secret(secret).await.unwrap();
    until("vault", false).await;
    fake.missing_requirements.lock().unwrap().clear();
    until("shell", true).await;
    runner.stop().await;
}
