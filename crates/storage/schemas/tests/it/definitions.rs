//! Which definitions are accepted, from which agents, and which of them applies.

use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, Role, Sensitivity};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{assert_forbidden, fields, noted};
use serde_json::{Value, json};

use crate::harness::{LayerHarness, definition, of_notes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_definition_is_refused_by_its_field() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let deep = (0..200).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    for (field, more) in [
        ("context.schema.properties.n.type", json!({"schema": {"properties": {"n": {"type": "numbr"}}}})),
        ("context.schema.$ref", json!({"schema": {"$ref": "https://example.com/schema.json"}})),
        ("context.schema.pattern", json!({"schema": {"pattern": "(?=a)b"}})),
        ("context.validation", json!({"validation": "maybe"})),
        ("context.schema", json!({"schema": null, "validation": "warn"})),
        ("context.ttl.type", json!({"ttl": {"type": "datetime"}})),
        ("context.ttl.config.max_reads", json!({"ttl": {"type": "usage", "config": {"max_reads": 0}}})),
        ("context.ttl.config.hours", json!({"ttl": {"type": "duration", "config": {"hours": -1}}})),
        ("context.llm_hints.exclude", json!({"llm_hints": {"exclude": "secret"}})),
        (
            "context.llm_hints.transform.a.type",
            json!({"llm_hints": {"transform": {"a": {"type": "jq", "query": "."}}}}),
        ),
        ("context.llm_hints.exlude", json!({"llm_hints": {"exlude": []}})),
        ("context.schema_name", json!({"schema_name": ""})),
        ("context", json!({"notes": "x".repeat(70_000)})),
    ] {
        assert_eq!(fields(agent.create(of_notes(more.clone()), None).await), [field], "{more}");
    }
    assert!(!fields(agent.create(of_notes(json!({"schema": deep})), None).await).is_empty());
    // A pattern that backtracks without end in other engines runs in linear time here.
    agent.create(of_notes(json!({"schema": {"properties": {"t": {"pattern": "^(a+)+$"}}}})), None).await.unwrap();
    let record = noted("x", json!({"t": format!("{}b", "a".repeat(50_000))}), &[]);
    assert_eq!(fields(agent.create(record, None).await), ["context.t"]);
    assert_eq!(fields(agent.create(definition(json!({"schema": {}})), None).await), ["context.schema_name"]);
    let two = NewBreadcrumb { tags: vec!["defines:other.v1".into()], ..of_notes(json!({})) };
    assert_eq!(fields(agent.create(two, None).await), ["tags[0]"]);
    let secret = NewBreadcrumb { sensitivity: Sensitivity::Secret, ..of_notes(json!({})) };
    assert_eq!(fields(agent.create(secret, None).await), ["sensitivity"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_in_rcrts_format_are_accepted() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let message = NewBreadcrumb {
        tags: vec!["schema:definition".into(), "defines:user.message.v1".into()],
        llm_hints: Some(json!({
            "transform": {"formatted": {"type": "format", "format": "User ({timestamp}): {content}"}}, "mode": "replace"
        })),
        ..definition(json!({
            "defines_schema": "user.message.v1",
            "lifecycle": {"ttl_policy": {
                "type": "duration", "config": {"days": 7}, "allow_override": true,
                "conditional_policies": [{"condition": {"tag_contains": "persist"}, "policy": {"type": "never"}}]
            }},
            "field_definitions": {"content": {"type": "string", "required": true}}
        }))
    };
    agent.create(message, None).await.unwrap();
    let said = |tags: &[&str]| NewBreadcrumb {
        schema_name: Some("user.message.v1".into()),
        ..noted("Said", json!({"content": "hi", "timestamp": "now"}), tags)
    };
    let id = agent.create(said(&[]), None).await.unwrap().id;
    let full = agent.get(id).await.unwrap();
    let hours = (full.ttl.unwrap() - full.created_at).num_hours();
    assert!((167..=168).contains(&hours), "{hours}");
    assert_eq!(full.context["content"], "hi");
    assert_eq!(Value::Object(agent.view(id).await.unwrap().context), json!({"formatted": "User (now): hi"}));
    let kept = agent.create(said(&["must:persist"]), None).await.unwrap().id;
    assert_eq!(agent.get(kept).await.unwrap().ttl, None);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_definition_of_a_name_applies() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let strict = agent.create(of_notes(json!({})), None).await.unwrap().id;
    let loose = agent.create(of_notes(json!({"validation": "off"})), None).await.unwrap().id;
    let bad = || noted("x", json!({"n": 0}), &[]);
    assert_eq!(fields(agent.create(bad(), None).await), ["context.n"]);
    // Also after a change of the younger definition.
    let titled = BreadcrumbChanges { title: Some("Another".into()), ..BreadcrumbChanges::default() };
    agent.update(loose, 1, titled).await.unwrap();
    assert_eq!(fields(agent.create(bad(), None).await), ["context.n"]);
    agent.delete(strict, None).await.unwrap();
    agent.create(bad(), None).await.unwrap();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_curators_define_records_of_the_runtime() {
    let harness = LayerHarness::start().await;
    let tenant = harness.tenant().await;
    let curator = harness.agent_with(tenant, &[Role::Curator]).await;
    let emitter = harness.agent_with(tenant, &[Role::Emitter, Role::Subscriber]).await;
    emitter.create(of_notes(json!({})), None).await.unwrap();
    let of_tools = || definition(json!({"schema_name": "tool.code.v1", "schema": true}));
    assert_forbidden(emitter.create(of_tools(), None).await);
    let id = curator.create(of_tools(), None).await.unwrap().id;
    let titled = || BreadcrumbChanges { title: Some("Mine".into()), ..BreadcrumbChanges::default() };
    assert_forbidden(emitter.update(id, 1, titled()).await);
    assert_forbidden(emitter.delete(id, None).await);
    curator.update(id, 1, titled()).await.unwrap();
    // No record becomes a definition by a change, and no definition becomes another record.
    let note = emitter.create(noted("x", json!({"n": 1}), &[]), None).await.unwrap().id;
    let named = |name: &str| BreadcrumbChanges { schema_name: Some(name.into()), ..BreadcrumbChanges::default() };
    assert_eq!(fields(emitter.update(note, 1, named("schema.def.v1")).await), ["schema_name"]);
    assert_eq!(fields(curator.update(id, 2, named("note.v1")).await), ["schema_name"]);
    curator.delete(id, None).await.unwrap();
    harness.close().await;
}
