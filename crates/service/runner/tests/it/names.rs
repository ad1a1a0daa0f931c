//! One registry: each name belongs to one tool, whichever executor runs it.

use rcrt_breadcrumb::{BreadcrumbChanges, EventKind, schema_names};
use rcrt_test_tenant::FailingStore;
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, code_context, native, options};
use crate::rights::emitter;

fn message(error: &Value) -> &str {
    error["errors"][0]["message"].as_str().unwrap()
}

/// The report names the source of the first tool, for each pair of kinds. (Code of a curator takes
/// precedence over native tools; see `precedence`.)
#[tokio::test]
async fn a_second_tool_of_a_name_is_refused_with_the_source_of_the_first() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let http = json!({"implementation": {"type": "http", "url": "https://api.example.com/"}});
    let kinds =
        [("native", native("a", json!({}))), ("sandbox", code("b", json!({}))), ("rest", native("c", http.clone()))];
    fake.does("a", |call, _| async move { Ok(json!(call.tool_id)) });
    fake.does("b", |call, _| async move { Ok(json!(call.tool_id)) });
    fake.does("c", |call, _| async move { Ok(json!(call.tool_id)) });
    let runner = fixture.start(&fake);
    let (_, stranger) = emitter(&fixture).await;
    for (source, first) in kinds {
        let name = first.title.clone();
        let first = fixture.create(first).await;
        assert_eq!(fixture.call(&name, json!({})).await.output, Some(json!(first)));
        for second in [native(&name, json!({})), code(&name, json!({})), native(&name, http.clone())] {
            let second = stranger.create(second, None).await.unwrap().id;
            let error = fixture.tool_error(second, |_| true).await;
            let expected = format!(
                "the name {name:?} is taken by a tool with the source {source} (record {first}); choose another"
            );
            assert!(message(&error).starts_with(&expected), "{error}");
            assert!(error["running_version"].is_null());
            assert_eq!(fixture.call(&name, json!({})).await.output, Some(json!(first)));
        }
    }
    // A runner that starts now decides the same.
    runner.stop().await;
    let runner = fixture.start(&fake);
    let catalog = fixture.catalog(|catalog| catalog.tools.len() == 3).await;
    assert_eq!(
        catalog.tools.iter().map(|tool| tool.source.to_string()).collect::<Vec<_>>(),
        ["native", "sandbox", "rest"]
    );
    runner.stop().await;
}

#[tokio::test]
async fn the_next_tool_of_a_name_serves_when_the_first_is_deleted() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let older = fixture.create(native("echo", json!({}))).await;
    let newer = fixture.create(native("echo", json!({}))).await;
    fake.does("echo", |call, _| async move { Ok(json!(call.tool_id)) });
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(older)));
    assert!(message(&fixture.tool_error(newer, |_| true).await).contains(&older.to_string()));
    fixture.person.delete(older, None).await.unwrap();
    while fixture.call("echo", json!({})).await.output != Some(json!(newer)) {}
    fixture
        .event(|event| {
            event.schema_name.as_deref() == Some(schema_names::TOOL_ERROR) && event.kind == EventKind::Deleted
        })
        .await;
    runner.stop().await;
}

/// An older record does not take a name by being renamed, and a runner that starts afterwards
/// decides the same.
#[tokio::test]
async fn a_renamed_record_cannot_take_the_name_of_another() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let old = fixture.create(code("old", json!({}))).await;
    let echo = fixture.create(code("echo", json!({}))).await;
    // The owner of the name is changed too, and keeps the name.
    fixture.change(echo, 1, code_context("echo", json!({"description": "second"}))).await;
    fake.does("echo", |call, _| async move { Ok(json!(call.tool_id)) });
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(echo)));
    fixture.change(old, 1, code_context("echo", json!({}))).await;
    assert!(message(&fixture.tool_error(old, |_| true).await).contains(&echo.to_string()));
    assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(echo)));
    runner.stop().await;

    let runner = fixture.start(&fake);
    for _ in 0..3 {
        assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(echo)));
    }
    // A record that gave up a name and takes it again comes after the one that took it meanwhile.
    fixture.change(echo, 2, code_context("other", json!({}))).await;
    while fixture.call("echo", json!({})).await.output != Some(json!(old)) {}
    fixture.change(echo, 3, code_context("echo", json!({}))).await;
    assert!(message(&fixture.tool_error(echo, |_| true).await).contains(&old.to_string()));
    assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(old)));
    runner.stop().await;
}

/// Not even for a moment: until it is known which record had the name first, the owner stays.
#[tokio::test]
async fn a_renamed_record_waits_until_its_claim_is_checked() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let old = fixture.create(code("old", json!({}))).await;
    let echo = fixture.create(code("echo", json!({}))).await;
    fake.does("echo", |call, _| async move { Ok(json!(call.tool_id)) });
    let store = FailingStore::new(fixture.runner.clone());
    let runner = Running::start(store.clone(), &fake, options());
    assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(echo)));
    let withheld = store.histories.close().await;
    fixture.change(old, 1, code_context("echo", json!({}))).await;
    store.histories.reached().await;
    assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(echo)));
    drop(withheld);
    fixture.tool_error(old, |_| true).await;
    assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(echo)));
    runner.stop().await;
}

#[tokio::test]
async fn a_tool_that_waits_keeps_its_name() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let first = fixture.create(native("shell", json!({}))).await;
    fake.missing_requirements.lock().unwrap().insert("shell".into(), vec!["Switch it on.".into()]);
    let runner = fixture.start(&fake);
    let second = fixture.create(native("shell", json!({}))).await;
    assert!(message(&fixture.tool_error(second, |_| true).await).contains(&first.to_string()));
    let response = fixture.call("shell", json!({})).await;
    assert_eq!(response.error_details.unwrap()["tool_id"], json!(first));
    runner.stop().await;
}

/// The catalog does not contain titles and tags: a change of them moves no name.
#[tokio::test]
async fn changes_of_title_and_tags_do_not_move_the_name() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let first = fixture.create(code("echo", json!({}))).await;
    let second = fixture.create(native("echo", json!({}))).await;
    fake.does("echo", |call, _| async move { Ok(json!(call.tool_id)) });
    let runner = fixture.start(&fake);
    fixture.tool_error(second, |_| true).await;
    let changes = BreadcrumbChanges { title: Some("another title".into()), ..BreadcrumbChanges::default() };
    fixture.person.update(first, 1, changes.clone()).await.unwrap();
    fixture.catalog(|catalog| catalog.find("echo").is_some_and(|tool| tool.tool_version == 2)).await;
    assert_eq!(fixture.call("echo", json!({})).await.output, Some(json!(first)));
    runner.stop().await;
}
