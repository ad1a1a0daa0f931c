//! Requests that name a version of their tool.

use std::sync::Arc;

use rcrt_breadcrumb::{BreadcrumbChanges, ErrorCode, NewSecret, ResponseStatus, StoreError, ToolResponse};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, code_context, options};

/// A tool with three versions, of which the third runs.
async fn with_three_versions(fixture: &Fixture) -> Uuid {
    let id = fixture.create(code("echo", json!({"description": "first"}))).await;
    fixture.change(id, 1, code_context("echo", json!({"description": "second"}))).await;
    fixture.change(id, 2, code_context("echo", json!({"description": "third"}))).await;
    id
}

async fn asked(fixture: &Fixture, more: Value) -> ToolResponse {
    let request = fixture.ask_with("echo", more).await;
    fixture.answer(request).await
}

fn ran(response: &ToolResponse) -> (Value, Value) {
    let output = response.output.as_ref().unwrap_or_else(|| panic!("{response:?}"));
    (output["version"].clone(), response.metadata["tool_version"].clone())
}

/// Through the queue only, and through local dispatch.
fn runners(fixture: &Fixture, fake: &Arc<Fake>, is_local: bool) -> Running {
    if is_local { fixture.start(fake) } else { Running::start(fixture.runner.clone(), fake, options()) }
}

async fn hash_of(fixture: &Fixture, id: Uuid, version: i64) -> String {
    let history = fixture.person.history(id).await.unwrap();
    format!("sha256:{}", history.iter().find(|one| one.version == version).unwrap().checksum)
}

#[tokio::test]
async fn a_request_gets_the_version_that_it_names() {
    for is_local in [false, true] {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        fake.supports_speculation.lock().unwrap().insert("echo".into());
        let id = with_three_versions(&fixture).await;
        let runner = runners(&fixture, &fake, is_local);
        fixture.catalog(|catalog| catalog.find("echo").is_some_and(|tool| tool.tool_version == 3)).await;
        for version in [1, 3, 2, 1] {
            let response = asked(&fixture, json!({"version": version})).await;
            assert_eq!(ran(&response), (json!(version), json!(version)), "{is_local}");
            let hash = hash_of(&fixture, id, version).await;
            assert_eq!(response.metadata["definition_hash"], hash);
            let by_hash = asked(&fixture, json!({"definition_hash": hash})).await;
            assert_eq!(ran(&by_hash), (json!(version), json!(version)), "{is_local}");
        }
        let response = asked(&fixture, json!({"version": null, "definition_hash": null})).await;
        assert_eq!(ran(&response), (json!(3), json!(3)));
        assert_eq!(response.metadata["definition_hash"], hash_of(&fixture, id, 3).await);
        runner.stop().await;
    }
}

#[tokio::test]
async fn a_definition_that_was_written_again_is_the_newest_version_with_it() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = with_three_versions(&fixture).await;
    fixture.change(id, 3, code_context("echo", json!({"description": "first"}))).await;
    fixture.change(id, 4, code_context("echo", json!({"description": "fifth"}))).await;
    let runner = fixture.start(&fake);
    let hash = hash_of(&fixture, id, 1).await;
    assert_eq!(hash, hash_of(&fixture, id, 4).await);
    assert_eq!(ran(&asked(&fixture, json!({"definition_hash": hash})).await), (json!(4), json!(4)));
    assert_eq!(ran(&asked(&fixture, json!({"version": 1})).await), (json!(1), json!(1)));
    runner.stop().await;
}

#[tokio::test]
async fn an_unknown_version_is_refused_with_those_that_exist() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = with_three_versions(&fixture).await;
    let runner = fixture.start(&fake);
    let unknown = format!("sha256:{}", "0".repeat(64));
    for more in [json!({"version": 7}), json!({"definition_hash": unknown})] {
        let response = asked(&fixture, more).await;
        assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound), "{response:?}");
        assert!(!response.metadata.contains_key("tool_id"), "no record ran: {response:?}");
        let error = response.error.unwrap();
        assert!(error.ends_with("existing versions: 3, 2, 1"), "{error}");
        let versions = &response.error_details.unwrap()["versions"];
        let listed: Vec<i64> =
            versions.as_array().unwrap().iter().map(|one| one["version"].as_i64().unwrap()).collect();
        assert_eq!(listed, [3, 2, 1]);
        assert_eq!(versions[2]["definition_hash"], hash_of(&fixture, id, 1).await);
    }
    runner.stop().await;
}

#[tokio::test]
async fn an_older_version_is_validated_and_the_newest_may_be_broken() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = with_three_versions(&fixture).await;
    let source = "export async function execute() {\n  return eval('1');\n}";
    let bad = json!({"code": {"language": "typescript", "source": source}});
    fixture.change(id, 3, code_context("echo", bad)).await;
    fixture.change(id, 4, code_context("echo", json!({"description": "fifth"}))).await;
    let runner = fixture.start(&fake);
    let response = asked(&fixture, json!({"version": 4})).await;
    assert_eq!(response.error_code, Some(ErrorCode::ExecutionFailed), "{response:?}");
    let error = response.error.unwrap();
    assert!(error.contains("version 4 of the tool \"echo\" does not work: code.source: "), "{error}");
    assert_eq!(response.error_details.unwrap()["errors"][0]["line"], 2);
    runner.stop().await;
}

#[tokio::test]
async fn a_version_with_another_name_or_schema_is_not_a_version_of_the_tool() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("before", json!({}))).await;
    fixture.change(id, 1, code_context("echo", json!({}))).await;
    let note = BreadcrumbChanges { schema_name: Some("note.v1".into()), ..BreadcrumbChanges::default() };
    fixture.person.update(id, 2, note).await.unwrap();
    let tool = BreadcrumbChanges { schema_name: Some("tool.code.v1".into()), ..BreadcrumbChanges::default() };
    fixture.person.update(id, 3, tool).await.unwrap();
    let runner = fixture.start(&fake);
    for version in [1, 3] {
        let response = asked(&fixture, json!({"version": version})).await;
        assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound), "{response:?}");
        assert!(response.error.unwrap().ends_with("existing versions: 4, 2"));
    }
    assert_eq!(ran(&asked(&fixture, json!({"version": 2})).await), (json!(2), json!(2)));
    runner.stop().await;
}

/// An older version that lacks a secret fails, and no other version answers in its place.
#[tokio::test]
async fn an_older_version_needs_its_own_secrets() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("echo", json!({"required_secrets": ["OLD_KEY"]}))).await;
    fixture.change(id, 1, code_context("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    let response = asked(&fixture, json!({"version": 1})).await;
    assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{response:?}");
    assert!(response.error.unwrap().contains("OLD_KEY"));
    assert_eq!(asked(&fixture, json!({})).await.status, ResponseStatus::Success);
    runner.stop().await;
}

/// A curator granted the secret to code that it could see, and not to every older version.
#[tokio::test]
async fn a_grant_does_not_cover_older_versions() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let needs = |description: &str| json!({"required_secrets": ["API_KEY"], "description": description});
    let id = fixture.create(code("echo", needs("first"))).await;
    fixture.change(id, 1, code_context("echo", needs("second"))).await;
    let secret = NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("API_KEY", "hunter2hunter2") };
    let secret = fixture.person.create_secret(secret).await.unwrap().id;
    fixture.person.grant_secret(secret, id).await.unwrap();
    let runner = fixture.start(&fake);
    assert_eq!(ran(&asked(&fixture, json!({})).await), (json!(2), json!(2)));
    let response = asked(&fixture, json!({"version": 1})).await;
    assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{response:?}");
    assert_eq!(response.error_details.unwrap()["secrets"][0]["problem"], "newer_only");
    runner.stop().await;
}

#[tokio::test]
async fn a_deleted_tool_has_no_versions() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = with_three_versions(&fixture).await;
    let runner = fixture.start(&fake);
    assert_eq!(ran(&asked(&fixture, json!({"version": 1})).await), (json!(1), json!(1)));
    fixture.person.delete(id, None).await.unwrap();
    let response = asked(&fixture, json!({"version": 1})).await;
    assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound), "{response:?}");
    runner.stop().await;
}

/// Many versions are used, and the calls that come back to the first ones still get them.
#[tokio::test]
async fn versions_that_were_dropped_are_loaded_again() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("echo", json!({"description": "1"}))).await;
    for version in 1..70 {
        fixture.change(id, version, code_context("echo", json!({"description": version.to_string() + "!"}))).await;
    }
    let runner = fixture.start(&fake);
    for version in 1..70 {
        assert_eq!(ran(&asked(&fixture, json!({"version": version})).await), (json!(version), json!(version)));
    }
    // 69 versions were loaded beside the newest, and 64 are kept.
    assert_eq!(fake.forgotten.borrow().get(&id), Some(&5));
    assert_eq!(ran(&asked(&fixture, json!({"version": 1})).await), (json!(1), json!(1)));
    runner.stop().await;
}

#[tokio::test]
async fn a_malformed_version_is_refused_when_it_is_written() {
    let fixture = Fixture::new().await;
    for (more, field) in [
        (json!({"version": 0}), "context.version"),
        (json!({"version": "1.0.0"}), "context.version"),
        (json!({"definition_hash": "abc"}), "context.definition_hash"),
        (json!({"version": 1, "definition_hash": format!("sha256:{}", "a".repeat(64))}), "context.definition_hash"),
    ] {
        let mut record = rcrt_breadcrumb::ToolRequest::record("echo", json!({}), None, None);
        record.context.extend(more.as_object().unwrap().clone());
        match fixture.person.create(record, None).await {
            Err(StoreError::Invalid(violations)) => assert_eq!(violations.0[0].field, field, "{more}"),
            other => panic!("{more}: {other:?}"),
        }
    }
}
