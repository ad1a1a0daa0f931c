//! Tools with missing requirements are not offered, and the requirements are reported.

use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, NewSecret, ResponseStatus, schema_names};
use rcrt_runner::RunnerOptions;
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, code, native, options};

fn quick() -> RunnerOptions {
    RunnerOptions { readiness: Duration::from_millis(20), ..options() }
}

#[tokio::test]
async fn missing_settings_are_shown_in_the_catalog_and_to_callers() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(native("shell", json!({}))).await;
    fixture.create(native("echo", json!({}))).await;
    let sentences = vec!["Switch it on with --enable-tool shell.".to_owned(), "Install a jail.".to_owned()];
    fake.missing_requirements.lock().unwrap().insert("shell".into(), sentences.clone());
    let runner = fixture.start_with(&fake, quick());
    let catalog = fixture.catalog(|catalog| !catalog.tools.is_empty()).await;
    assert!(catalog.find("shell").is_none());
    let waiting = catalog.find_waiting("shell").unwrap();
    assert_eq!(
        (waiting.tool_id, &waiting.missing_requirements, waiting.source.to_string()),
        (tool, &sentences, "native".into())
    );

    let response = fixture.call("shell", json!({})).await;
    assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::PermissionDenied), Some(false)));
    assert_eq!(response.error_details.unwrap()["missing_requirements"], json!(sentences));
    assert_eq!(
        response.error.unwrap(),
        "the tool \"shell\" has missing requirements: Switch it on with --enable-tool shell. Install a jail"
    );
    assert!(fake.begun.lock().unwrap().is_empty());
    assert!(fixture.list(schema_names::TOOL_ERROR).await.is_empty(), "a missing setting is not the author's error");

    // It is offered as soon as it is ready, and waits again when it is not.
    fake.missing_requirements.lock().unwrap().clear();
    fixture.catalog(|catalog| catalog.find("shell").is_some() && catalog.waiting.is_empty()).await;
    assert_eq!(fixture.call("shell", json!({})).await.status, ResponseStatus::Success);
    fake.missing_requirements.lock().unwrap().insert("shell".into(), sentences);
    fixture
        .catalog(|catalog| {
            catalog.find("shell").is_none() && catalog.find("echo").is_some() && catalog.waiting.len() == 1
        })
        .await;
    assert_eq!(fixture.call("shell", json!({})).await.error_code, Some(ErrorCode::PermissionDenied));
    runner.stop().await;
}

#[tokio::test]
async fn a_tool_is_offered_while_its_secret_is_granted() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("secretive", json!({"required_secrets": ["API_KEY"]}))).await;
    let runner = fixture.start_with(&fake, quick());
    let waits = |word: &'static str| {
        move |catalog: &rcrt_breadcrumb::Catalog| {
            catalog.find("secretive").is_none()
                && catalog
                    .find_waiting("secretive")
                    .is_some_and(|tool| tool.missing_requirements.iter().any(|one| one.contains(word)))
        }
    };
    let catalog = fixture.catalog(waits("does not exist")).await;
    assert_eq!(
        catalog.find_waiting("secretive").unwrap().missing_requirements,
        [format!(
            "the secret \"API_KEY\" does not exist; a curator can fix it with \
             `rcrt secret set API_KEY --readable && rcrt secret grant API_KEY {tool}`"
        )]
    );
    let key = NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("API_KEY", "hunter2hunter2") };
    let secret = fixture.person.create_secret(key).await.unwrap().id;
    fixture.catalog(waits("not granted")).await;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    fixture.catalog(|catalog| catalog.find("secretive").is_some()).await;
    fixture.person.revoke_secret(secret, tool).await.unwrap();
    fixture.catalog(waits("not granted")).await;
    runner.stop().await;
}

/// A call does not wait for the periodic check: it checks itself, and updates the catalog.
#[tokio::test]
async fn a_call_checks_requirements_itself() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("secretive", json!({"required_secrets": ["API_KEY"]}))).await;
    let runner = fixture.start_with(&fake, RunnerOptions { readiness: Duration::from_hours(1), ..options() });
    fixture.catalog(|catalog| catalog.find_waiting("secretive").is_some()).await;
    let key = NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("API_KEY", "hunter2hunter2") };
    let secret = fixture.person.create_secret(key).await.unwrap().id;
    fixture.person.grant_secret(secret, tool).await.unwrap();
    assert_eq!(fixture.call("secretive", json!({})).await.status, ResponseStatus::Success);
    fixture.catalog(|catalog| catalog.find("secretive").is_some()).await;
    fixture.person.revoke_secret(secret, tool).await.unwrap();
    assert_eq!(fixture.call("secretive", json!({})).await.error_code, Some(ErrorCode::PermissionDenied));
    fixture.catalog(|catalog| catalog.find("secretive").is_none() && catalog.find_waiting("secretive").is_some()).await;
    runner.stop().await;
}

#[tokio::test]
async fn a_waiting_tool_is_not_triggered_and_bootstraps_when_ready() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("eager", json!({"bootstrap": {"enabled": true, "mode": "once"}}))).await;
    fixture.create(code("follower", json!({"subscriptions": [{"any_tags": ["news"]}]}))).await;
    for tool in ["eager", "follower"] {
        fake.missing_requirements.lock().unwrap().insert(tool.into(), vec!["Something.".into()]);
    }
    let runner = fixture.start_with(&fake, quick());
    fixture.catalog(|catalog| catalog.waiting.len() == 2).await;
    let news = |title: &str| rcrt_breadcrumb::NewBreadcrumb {
        title: title.into(),
        tags: vec!["news".into()],
        ..rcrt_breadcrumb::NewBreadcrumb::default()
    };
    fixture.create(news("one")).await;
    // Uses the same queue of events: all effects of the first event exist when this tool has run.
    fixture.create(code("echo", json!({"subscriptions": [{"any_tags": ["marker"]}]}))).await;
    fixture.catalog(|catalog| catalog.find("echo").is_some()).await;
    let marker = rcrt_breadcrumb::NewBreadcrumb { tags: vec!["marker".into()], ..news("marker") };
    fixture.create(marker).await;
    fake.until(|progress| progress.begun == 1).await;
    let requests = fixture.list(schema_names::TOOL_REQUEST).await;
    assert_eq!(requests.len(), 1, "{requests:?}");

    fake.missing_requirements.lock().unwrap().clear();
    fake.until(|progress| progress.running.contains_key("eager")).await;
    fixture.create(news("two")).await;
    fake.until(|progress| progress.running.contains_key("follower")).await;
    runner.stop().await;
}
