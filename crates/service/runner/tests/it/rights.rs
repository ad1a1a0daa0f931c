//! A runner sees all records of its tenant. What it does for an agent sees no more than that agent
//! does.

use std::sync::Arc;

use rcrt_breadcrumb::{
    BreadcrumbChanges, Breadcrumbs, Identity, NewAgent, NewBreadcrumb, Profile, Role, StoreError, Tenancy, ToolFailure,
    ToolRequest, Visibility, schema_names,
};
use rcrt_egress::{Egress, EgressOptions};
use rcrt_executors::CallHostOps;
use rcrt_sandbox::{ApiCall, HostOps};
use rcrt_test_tenant::FailingStore;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fake::{Fake, event_of};
use crate::fixture::{Fixture, Running, code, options};

/// An agent without special roles, and the store as it sees it.
pub async fn emitter(fixture: &Fixture) -> (Uuid, Arc<dyn Breadcrumbs>) {
    let roles = vec![Role::Emitter, Role::Subscriber];
    let agent = NewAgent { name: Uuid::new_v4().to_string(), roles, profile: Profile::Main, tools: None };
    let agent = fixture.store.create_agent(fixture.owner, None, agent).await.unwrap().agent;
    let identity = Identity { owner_id: fixture.owner, agent_id: agent.id, roles: agent.roles, profile: Profile::Main };
    (agent.id, fixture.dispatch.acting_as(identity))
}

fn note(visibility: Visibility) -> NewBreadcrumb {
    let Value::Object(context) = json!({"text": "walrus"}) else { unreachable!() };
    let tags = vec!["note".into()];
    NewBreadcrumb { title: "a note".into(), context, tags, visibility, ..NewBreadcrumb::default() }
}

/// What a tool's code finds of the record through `context.api`: by id, in a list, by search.
async fn found(call: rcrt_executors::ToolCall, egress: Arc<Egress>) -> Result<Value, ToolFailure> {
    let id = call.input["id"].as_str().unwrap().to_owned();
    let world = CallHostOps::new(egress, &call).unwrap();
    let by_id = world.api(ApiCall::GetBreadcrumb { id: id.clone() }).await;
    let version = by_id.as_ref().map_or(1, |record| record["version"].as_i64().unwrap());
    let changed = world.api(ApiCall::UpdateBreadcrumb { id, version, changes: json!({}) }).await.is_ok();
    let listed = world.api(ApiCall::SearchBreadcrumbs { query: json!({"tag": "note"}) }).await.unwrap();
    let searched = world.api(ApiCall::VectorSearch { query: json!({"q": "walrus"}) }).await.unwrap();
    let is_some = |list: &Value| !list.as_array().unwrap().is_empty();
    Ok(json!([by_id.is_ok(), changed, is_some(&listed), is_some(&searched)]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_has_the_rights_of_the_requesting_agent() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let egress = Arc::new(Egress::new(EgressOptions::default()).unwrap());
    let own = egress.clone();
    fake.does("peek", move |call, _| found(call, own.clone()));
    // Calls another tool to do it.
    fake.does("ask", move |call, _| {
        let egress = egress.clone();
        async move {
            let record = ToolRequest::record("peek", call.input.clone(), Some("nested"), None);
            let world = CallHostOps::new(egress, &call).unwrap();
            Ok(world.api(ApiCall::CreateBreadcrumb { record: json!(record) }).await.unwrap())
        }
    });
    for tool in ["peek", "ask"] {
        fixture.create(code(tool, json!({"permissions": {"tools": true}}))).await;
    }
    let runner = fixture.start(&fake);
    let (agent, asker) = emitter(&fixture).await;
    for (n, (visibility, expected)) in [
        (Visibility::Private, json!([false, false, false, false])),
        (Visibility::Team, json!([true, true, true, true])),
    ]
    .into_iter()
    .enumerate()
    {
        let id = fixture.create(note(visibility)).await;
        let request = ToolRequest::record("peek", json!({"id": id}), None, None);
        let request = asker.create(request, None).await.unwrap().id;
        assert_eq!(fixture.answer(request).await.output.unwrap(), expected, "{visibility:?}");
        let request = ToolRequest::record("ask", json!({"id": id}), None, None);
        let request = asker.create(request, None).await.unwrap().id;
        let nested: Uuid = fixture.answer(request).await.output.unwrap()["id"].as_str().unwrap().parse().unwrap();
        assert_eq!(asker.get(nested).await.unwrap().created_by, Some(agent));
        let mut left = n + 1;
        let event = fixture
            .event(|event| {
                let is_nested = event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE)
                    && event.context["request_id"] == "nested";
                left -= usize::from(is_nested);
                left == 0
            })
            .await;
        if visibility == Visibility::Private {
            assert_eq!(event.context["output"], expected);
            // An agent that can see the record sees it through the same tool.
            assert_eq!(fixture.call("peek", json!({"id": id})).await.output.unwrap(), json!([true, true, true, true]));
        }
        fixture.person.delete(id, None).await.unwrap();
    }
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_triggered_only_by_records_its_author_can_see() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let (_, author) = emitter(&fixture).await;
    let listening = json!({"subscriptions": [{"all_tags": ["note"]}]});
    author.create(code("theirs", listening.clone()), None).await.unwrap();
    fixture.create(code("ours", listening)).await;
    for tool in ["theirs", "ours"] {
        fake.does(tool, |call, _| async move { Ok(event_of(&call)) });
    }
    let runner = fixture.start(&fake);
    fixture.call("theirs", json!({})).await;
    let private = fixture.create(note(Visibility::Private)).await;
    let team = fixture.create(note(Visibility::Team)).await;
    // Responses arrive in any order.
    let mut heard = Vec::new();
    fixture
        .event(|event| {
            let is_note = |output: &&Value| output["schema_name"] != schema_names::TOOL_REQUEST;
            let of = event.context.get("output").filter(is_note).and_then(|output| output["breadcrumb_id"].as_str());
            if let Some(id) = of.and_then(|id| id.parse::<Uuid>().ok()) {
                heard.push((event.context["tool"].as_str().unwrap().to_owned(), id));
            }
            heard.len() == 3
        })
        .await;
    heard.sort_unstable();
    assert_eq!(heard, [("ours".to_owned(), private), ("ours".to_owned(), team), ("theirs".to_owned(), team)]);
    runner.stop().await;
}

/// The runner receives the event of the private version when the record is already visible.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_not_triggered_by_an_old_version_its_author_cannot_see() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let (_, author) = emitter(&fixture).await;
    let listening = json!({"subscriptions": [{"all_tags": ["note"]}]});
    author.create(code("theirs", listening), None).await.unwrap();
    fake.does("theirs", |call, _| async move { Ok(event_of(&call)) });
    let failing_store = FailingStore::new(fixture.runner.clone());
    let runner = Running::start(failing_store.clone(), &fake, options());
    fixture.call("theirs", json!({})).await;
    let held = failing_store.events.close().await;
    let id = fixture.create(note(Visibility::Private)).await;
    let Value::Object(context) = json!({"text": "for all"}) else { unreachable!() };
    let opened = BreadcrumbChanges {
        visibility: Some(Visibility::Team),
        context: Some(context),
        ..BreadcrumbChanges::default()
    };
    fixture.person.update(id, 1, opened).await.unwrap();
    let last = fixture.create(note(Visibility::Team)).await;
    drop(held);
    let mut heard = Vec::new();
    fixture
        .event(|event| {
            let is_note = |output: &&Value| output["schema_name"] != schema_names::TOOL_REQUEST;
            if let Some(output) = event.context.get("output").filter(is_note)
                && let Some(about) = output["breadcrumb_id"].as_str()
            {
                heard.push((about.parse::<Uuid>().unwrap(), output["version"].as_i64().unwrap()));
            }
            heard.len() == 2
        })
        .await;
    heard.sort_unstable();
    assert_eq!(heard, [(id, 2), (last, 1)]);
    // One request for each event that it received, and the first call.
    let requests = fixture.list(schema_names::TOOL_REQUEST).await;
    assert_eq!(requests.len(), 3);
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_response_to_a_private_request_is_private() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("quiet", json!({}))).await;
    fake.does("quiet", |_, _| async move { Ok(json!({"word": "hush"})) });
    let runner = fixture.start(&fake);
    let ((_, asker), (_, colleague)) = (emitter(&fixture).await, emitter(&fixture).await);
    let request = ToolRequest::record("quiet", json!({}), None, None);
    let request = NewBreadcrumb { visibility: Visibility::Private, ..request };
    let request = asker.create(request, None).await.unwrap().id;
    assert_eq!(fixture.answer(request).await.output.unwrap(), json!({"word": "hush"}));
    let response = asker.call(request).await.unwrap().response.unwrap();
    assert_eq!(asker.get(response).await.unwrap().context["output"]["word"], "hush");
    for id in [request, response] {
        assert!(matches!(colleague.get(id).await, Err(StoreError::NotFound { .. })));
    }
    runner.stop().await;
}
