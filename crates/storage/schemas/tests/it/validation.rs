//! Records are checked against their definitions when they are written.

use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, StoreError};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{answer_to, claim_of, fields, noted, object, request};
use serde_json::{Value, json};

use crate::harness::{LayerHarness, definition, of_notes};

fn context(value: Value) -> BreadcrumbChanges {
    BreadcrumbChanges { context: Some(object(value)), ..BreadcrumbChanges::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_violates_its_definition_is_refused_by_field() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    agent.create(of_notes(json!({})), None).await.unwrap();
    assert_eq!(fields(agent.create(noted("x", json!({"n": 0}), &["note"]), None).await), ["context.n"]);
    assert_eq!(fields(agent.create(noted("x", json!({"m": 1}), &["note"]), None).await), ["context.n"]);
    assert!(agent.list(&BreadcrumbQuery::tagged("note")).await.unwrap().is_empty());

    let id = agent.create(noted("x", json!({"n": 1}), &["note"]), None).await.unwrap().id;
    assert_eq!(fields(agent.update(id, 1, context(json!({"n": "2"}))).await), ["context.n"]);
    let read = agent.get(id).await.unwrap();
    assert_eq!((read.version, read.context), (1, object(json!({"n": 1}))));
    agent.update(id, 1, context(json!({"n": 2}))).await.unwrap();
    // Undefined names, and records of another tenant, are not checked.
    let other = rcrt_breadcrumb::NewBreadcrumb { schema_name: Some("other.v1".into()), ..noted("x", json!({}), &[]) };
    let other = agent.create(other, None).await.unwrap();
    let stranger = harness.alone().await;
    stranger.create(noted("x", json!({}), &[]), None).await.unwrap();
    // A record that changes to the name is checked, too.
    let named = BreadcrumbChanges { schema_name: Some("note.v1".into()), ..BreadcrumbChanges::default() };
    assert_eq!(fields(agent.update(other.id, 1, named).await), ["context.n"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warning_is_returned_with_the_record() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    agent.create(of_notes(json!({"validation": "warn"})), None).await.unwrap();
    let created = agent.create(noted("x", json!({"n": "one"}), &[]), None).await.unwrap();
    assert_eq!(created.warnings.iter().map(|one| one.field.as_str()).collect::<Vec<_>>(), ["context.n"]);
    let updated = agent.update(created.id, 1, context(json!({"n": -1}))).await.unwrap();
    assert_eq!(updated.warnings.iter().map(|one| one.field.as_str()).collect::<Vec<_>>(), ["context.n"]);
    assert!(agent.get(created.id).await.unwrap().warnings.is_empty());
    assert!(agent.update(created.id, 2, context(json!({"n": 1}))).await.unwrap().warnings.is_empty());
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_from_before_a_definition_stay_and_can_be_changed_elsewhere() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let id = agent.create(noted("x", json!({"n": "old"}), &[]), None).await.unwrap().id;
    agent.create(of_notes(json!({})), None).await.unwrap();
    assert_eq!(agent.get(id).await.unwrap().context, object(json!({"n": "old"})));
    let titled = BreadcrumbChanges { title: Some("y".into()), ..BreadcrumbChanges::default() };
    agent.update(id, 1, titled).await.unwrap();
    assert_eq!(fields(agent.update(id, 2, context(json!({"n": "older"}))).await), ["context.n"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_record_is_checked_too() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    agent.create(of_notes(json!({})), None).await.unwrap();
    let many: Vec<Value> = (0..20_000).map(|n| json!({"n": n, "text": "words and words"})).collect();
    let found = fields(agent.create(noted("x", json!({"n": 0, "many": many.clone()}), &[]), None).await);
    assert_eq!(found, ["context.n"]);
    let id = agent.create(noted("x", json!({"n": 1, "many": many.clone()}), &[]), None).await.unwrap().id;
    let read = agent.get(id).await.unwrap();
    assert_eq!(read.context["many"].as_array().unwrap().len(), many.len());
    assert_eq!(fields(agent.update(id, 1, context(json!({"n": 0, "many": many}))).await), ["context.n"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_gets_a_response_whatever_its_definition_says() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let of_responses = |validation: &str| {
        definition(json!({
            "schema_name": "tool.response.v1", "validation": validation, "schema": {"required": ["never there"]},
            "ttl": {"type": "duration", "config": {"hours": 24}}
        }))
    };
    assert_eq!(fields(agent.create(of_responses("refuse"), None).await), ["context.validation"]);
    agent.create(of_responses("warn"), None).await.unwrap();
    agent.create(request(), None).await.unwrap();
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    agent.start(claim.lease, 1).await.unwrap();
    let response = agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
    let response = agent.get(response).await.unwrap();
    let minutes = (response.ttl.unwrap() - response.created_at).num_minutes();
    assert!((1439..=1440).contains(&minutes), "{minutes}");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_change_does_not_hide_a_stale_one() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    agent.create(of_notes(json!({})), None).await.unwrap();
    let id = agent.create(noted("x", json!({"n": 1}), &[]), None).await.unwrap().id;
    let stale = agent.update(id, 7, context(json!({"n": 0}))).await;
    assert_eq!(stale, Err(StoreError::VersionConflict { expected: 7, actual: 1 }));
    harness.close().await;
}
