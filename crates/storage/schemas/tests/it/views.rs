//! How models see records.

use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, NewBreadcrumb};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{fields, noted, object};
use serde_json::{Value, json};

use crate::harness::{LayerHarness, of_notes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_short_view_is_transformed() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let hints = json!({"exclude": ["internal", "people.mail"], "rename": {"n": "number"}});
    let definition = agent.create(of_notes(json!({"llm_hints": hints})), None).await.unwrap().id;
    let context = json!({"n": 1, "internal": "x", "people": [{"name": "Ada", "mail": "a@b"}]});
    let id = agent.create(noted("x", context.clone(), &["note"]), None).await.unwrap().id;
    let shown = json!({"number": 1, "people": [{"name": "Ada"}]});
    assert_eq!(Value::Object(agent.view(id).await.unwrap().context), shown);
    assert_eq!(Value::Object(agent.get(id).await.unwrap().context), context);
    assert_eq!(agent.history(id).await.unwrap()[0].context, object(context.clone()));
    let listed = agent.list(&BreadcrumbQuery::tagged("note")).await.unwrap();
    assert_eq!(listed[0].context, Some(object(context)));
    // A definition itself is shown unchanged.
    assert!(agent.view(definition).await.unwrap().context.contains_key("schema"));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_records_own_hints_replace_those_of_its_schema() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    agent.create(of_notes(json!({"llm_hints": {"include": ["n"]}})), None).await.unwrap();
    let own = NewBreadcrumb {
        llm_hints: Some(json!({"template": "# {{title}}\n{{context.n}} of {{items.length}}", "mode": "merge"})),
        ..noted("Mine", json!({"n": 1, "items": [1, 2]}), &[])
    };
    let id = agent.create(own, None).await.unwrap().id;
    let shown = json!({"n": 1, "items": [1, 2], "text": "# Mine\n1 of 2"});
    assert_eq!(Value::Object(agent.view(id).await.unwrap().context), shown);
    let bad =
        BreadcrumbChanges { llm_hints: Some(json!({"template": "{{#each items}}"})), ..BreadcrumbChanges::default() };
    assert_eq!(fields(agent.update(id, 1, bad).await), ["llm_hints.template"]);
    let bad =
        NewBreadcrumb { llm_hints: Some(json!({"mode": "short"})), schema_name: None, ..noted("x", json!({}), &[]) };
    assert_eq!(fields(agent.create(bad, None).await), ["llm_hints.mode"]);
    harness.close().await;
}
