//! A draft is a version of a tool that only its author can call.

use std::sync::Arc;

use rcrt_breadcrumb::{
    BreadcrumbChanges, Breadcrumbs, DRAFT_TAG, ErrorCode, Identity, NewBreadcrumb, Profile, Role, Tenancy, ToolRequest,
    ToolResponse, schema_names,
};
use rcrt_egress::{Egress, EgressOptions};
use rcrt_executors::CallHostOps;
use rcrt_sandbox::{ApiCall, HostOps};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, code_context, native, options};
use crate::rights::emitter;

fn draft(name: &str, more: Value) -> NewBreadcrumb {
    let mut record = code(name, more);
    record.tags.push(DRAFT_TAG.to_owned());
    record
}

/// A next version of the record, as a draft or not.
async fn write(store: &Arc<dyn Breadcrumbs>, id: Uuid, version: i64, context: Value, as_draft: bool) {
    let Value::Object(context) = context else { panic!("a context is an object") };
    let tags = if as_draft { vec![DRAFT_TAG.to_owned()] } else { Vec::new() };
    let changes = BreadcrumbChanges { context: Some(context), tags: Some(tags), ..BreadcrumbChanges::default() };
    store.update(id, version, changes).await.unwrap();
}

async fn call(fixture: &Fixture, store: &Arc<dyn Breadcrumbs>, tool: &str) -> ToolResponse {
    let request = store.create(ToolRequest::record(tool, json!({}), None, None), None).await.unwrap().id;
    fixture.answer(request).await
}

/// The version that responded.
async fn version(fixture: &Fixture, store: &Arc<dyn Breadcrumbs>, tool: &str) -> i64 {
    let response = call(fixture, store, tool).await;
    response.metadata["tool_version"].as_i64().unwrap_or_else(|| panic!("{response:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_its_author_finds_a_draft() {
    for is_local in [true, false] {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        let runner =
            if is_local { fixture.start(&fake) } else { Running::start(fixture.runner.clone(), &fake, options()) };
        let ((_, author), (_, other)) = (emitter(&fixture).await, emitter(&fixture).await);
        author.create(draft("sketch", json!({})), None).await.unwrap();
        fixture.create(code("plain", json!({}))).await;
        assert_eq!(version(&fixture, &author, "sketch").await, 1);
        for stranger in [&other, &fixture.person] {
            let response = call(&fixture, stranger, "sketch").await;
            assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound), "{response:?}");
        }
        let catalog = fixture.catalog(|catalog| catalog.names().any(|name| name == "plain")).await;
        assert!(catalog.names().all(|name| name != "sketch"), "{catalog:?}");
        // The draft does not take its name from others.
        let id = other.create(code("sketch", json!({})), None).await.unwrap().id;
        let response = call(&fixture, &fixture.person, "sketch").await;
        assert_eq!(response.metadata["tool_id"], json!(id));
        assert_ne!(call(&fixture, &author, "sketch").await.metadata["tool_id"], json!(id));
        runner.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_published_version_goes_on_to_serve_everybody_else() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    let ((_, author), (_, other)) = (emitter(&fixture).await, emitter(&fixture).await);
    let described = |text: &str| code_context("growing", json!({"description": text}));
    let id = author.create(code("growing", json!({})), None).await.unwrap().id;
    assert_eq!(version(&fixture, &author, "growing").await, 1);
    for at in 2..=3 {
        write(&author, id, at - 1, described(&format!("version {at}")), true).await;
        assert_eq!(version(&fixture, &author, "growing").await, at);
        assert_eq!(version(&fixture, &other, "growing").await, 1);
    }
    // Without a draft that works, the author uses what everybody uses.
    let broken = code_context("growing", json!({"code": {"language": "typescript", "source": "export const a = 1;"}}));
    write(&author, id, 3, broken, true).await;
    assert_eq!(version(&fixture, &author, "growing").await, 1);
    write(&author, id, 4, described("version 5"), true).await;
    runner.stop().await;
    // A runner that starts now finds both in the record's history.
    let runner = fixture.start(&fake);
    assert_eq!(version(&fixture, &other, "growing").await, 1);
    assert_eq!(version(&fixture, &author, "growing").await, 5);
    let published = BreadcrumbChanges { tags: Some(Vec::new()), ..BreadcrumbChanges::default() };
    fixture.person.update(id, 5, published).await.unwrap();
    for caller in [&author, &other] {
        assert_eq!(version(&fixture, caller, "growing").await, 6);
    }
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_triggered_call_uses_the_published_version() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    let (_, author) = emitter(&fixture).await;
    fake.does("listener", |call, _| async move {
        Ok(json!({"by_event": !call.chain.is_empty(), "version": call.tool_version}))
    });
    let listening = |text: &str| json!({"description": text, "subscriptions": [{"all_tags": ["note"]}]});
    let id = author.create(code("listener", listening("published")), None).await.unwrap().id;
    write(&author, id, 1, code_context("listener", listening("a draft")), true).await;
    assert_eq!(version(&fixture, &author, "listener").await, 2);
    let note = NewBreadcrumb { title: "a note".into(), tags: vec!["note".into()], ..NewBreadcrumb::default() };
    author.create(note, None).await.unwrap();
    let triggered = fixture
        .event(|event| {
            event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE)
                && event.context["tool"] == "listener"
                && event.context["output"]["by_event"] == true
        })
        .await;
    assert_eq!(triggered.context["output"]["version"], 1);
    runner.stop().await;
}

/// Else the caller of a tool could read what it hands to the tools that it calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_calls_others_gets_the_published_ones_first() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    let egress = Arc::new(Egress::new(EgressOptions::default()).unwrap());
    fake.does("outer", move |call, _| {
        let egress = egress.clone();
        async move {
            let record = ToolRequest::record(call.input["tool"].as_str().unwrap(), json!({}), None, None);
            let world = CallHostOps::new(egress, &call).unwrap();
            let created = world.api(ApiCall::CreateBreadcrumb { record: json!(record) }).await.unwrap();
            Ok(created["id"].clone())
        }
    });
    let (_, author) = emitter(&fixture).await;
    fixture.create(code("outer", json!({"permissions": {"tools": true}}))).await;
    let published = fixture.create(code("helper", json!({}))).await;
    let mut own = Vec::new();
    for name in ["helper", "part"] {
        own.push(author.create(draft(name, json!({})), None).await.unwrap().id);
    }
    assert_eq!(call(&fixture, &author, "helper").await.metadata["tool_id"], json!(own[0]));
    for (tool, expected) in [("helper", published), ("part", own[1])] {
        let request = ToolRequest::record("outer", json!({"tool": tool}), None, None);
        let request = author.create(request, None).await.unwrap().id;
        let nested: Uuid = serde_json::from_value(fixture.answer(request).await.output.unwrap()).unwrap();
        assert_eq!(fixture.answer(nested).await.metadata["tool_id"], json!(expected), "{tool}");
    }
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_of_this_process_tests_a_tool_without_a_record() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let (agent_id, agent) = emitter(&fixture).await;
    let roles = vec![Role::Emitter, Role::Subscriber];
    let identity = Identity { owner_id: fixture.owner, agent_id, roles, profile: Profile::Main };
    let spec = json!({"name": "tried"}).as_object().unwrap().clone();
    assert!(fixture.dispatch.test_tool(identity.clone(), spec.clone()).await.is_none(), "there is no runner");
    fixture.create(native("test_tool", json!({}))).await;
    fake.does("test_tool", |call, _| async move { Ok(json!([call.input, call.request.agent_id])) });
    let runner = fixture.start(&fake);
    // A call through the queue or not: the runner is there.
    assert!(call(&fixture, &agent, "test_tool").await.output.is_some());
    let tested = fixture.dispatch.test_tool(identity.clone(), spec.clone()).await.unwrap().unwrap();
    assert_eq!(tested, json!([{"tool_spec": spec}, agent_id]));
    for schema in [schema_names::TOOL_REQUEST, schema_names::TOOL_RESPONSE] {
        assert_eq!(fixture.list(schema).await.len(), 1, "only that of the call: {schema}");
    }
    runner.stop().await;
    assert!(fixture.dispatch.test_tool(identity.clone(), spec.clone()).await.is_none(), "the runner has stopped");
}
