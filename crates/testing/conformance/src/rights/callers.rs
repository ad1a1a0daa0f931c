//! An agent with the role `caller` writes requests and reads its own calls, and nothing else.

use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, BreadcrumbQuery, EventNumber, Role, Search, StoreError, ToolRequest,
    Visibility, schema_names,
};
use serde_json::json;
use uuid::Uuid;

use super::id_of;
use crate::harness::{
    Agent, Harness, answer_to, assert_forbidden, assert_not_found, claim_of, next, note, noted, request,
};

/// The request of this agent, answered by the runner. Returns the request and its response.
async fn called(agent: &Agent, runner: &Agent) -> (Uuid, Uuid) {
    let request = agent.create(request(), None).await.unwrap().id;
    let claim = runner.claim(&claim_of(1)).await.unwrap().pop().unwrap();
    assert_eq!(claim.request.id, request);
    let response = runner.complete(claim.lease, answer_to(&claim, json!("walrus"))).await.unwrap();
    (request, response)
}

pub async fn a_caller_writes_only_requests(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let (caller, author) = (harness.agent_with(tenant, &[Role::Caller]).await, harness.agent(tenant).await);
    let request_id = caller.create(request(), None).await.unwrap().id;
    let of_others = author.create(note("Of others"), None).await.unwrap().id;
    let other_request = author.create(request(), None).await.unwrap().id;

    let tool = noted("Tool", json!({"name": "mine"}), &["tool"]);
    for schema in [None, Some("note.v1"), Some(schema_names::TOOL_CODE), Some(schema_names::TOOL_V1)] {
        let record = rcrt_breadcrumb::NewBreadcrumb { schema_name: schema.map(str::to_owned), ..tool.clone() };
        assert_forbidden(caller.create(record, None).await);
    }
    for id in [request_id, of_others] {
        assert_forbidden(caller.update(id, 1, BreadcrumbChanges::default()).await);
        assert_forbidden(caller.delete(id, None).await);
        let change = AclChange {
            breadcrumb_id: id,
            grantee_agent_id: Some(id_of(&author)),
            grantee_owner_id: None,
            action: Some(Action::ReadFull),
            actions: Vec::new(),
        };
        assert_forbidden(caller.grant(&change).await);
        assert_forbidden(caller.revoke(&change).await);
    }
    assert_not_found(caller.cancel(other_request).await);
    caller.cancel(request_id).await.unwrap();

    // Another role adds its own rights.
    let both = harness.agent_with(tenant, &[Role::Caller, Role::Emitter]).await;
    let own = both.create(note("Mine"), None).await.unwrap().id;
    both.delete(own, None).await.unwrap();
}

pub async fn a_caller_reads_only_its_own_calls(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let (caller, other) =
        (harness.agent_with(tenant, &[Role::Caller]).await, harness.agent_with(tenant, &[Role::Caller]).await);
    let author = harness.agent(tenant).await;
    let (request, response) = called(&caller, &author).await;
    let (other_request, other_response) = called(&other, &author).await;
    let open = author.create(noted("Open", json!({"text": "walrus"}), &["tool:response:"]), None).await.unwrap().id;
    let public = rcrt_breadcrumb::NewBreadcrumb { visibility: Visibility::Public, ..note("walrus") };
    let public = author.create(public, None).await.unwrap().id;
    // A grant opens nothing to a caller.
    let change = AclChange {
        breadcrumb_id: open,
        grantee_agent_id: Some(id_of(&caller)),
        grantee_owner_id: None,
        action: Some(Action::ReadFull),
        actions: Vec::new(),
    };
    author.grant(&change).await.unwrap();

    for id in [request, response] {
        assert_eq!(caller.view(id).await.unwrap().id, id);
        assert_eq!(caller.get(id).await.unwrap().id, id);
        assert_eq!(caller.history(id).await.unwrap().len(), 1);
    }
    for id in [other_request, other_response, open, public] {
        assert_not_found(caller.view(id).await);
        assert_not_found(caller.get(id).await);
        assert_not_found(caller.history(id).await);
    }
    assert_eq!(caller.call(request).await.unwrap().response, Some(response));
    for id in [other_request, Uuid::new_v4()] {
        assert_not_found(caller.call(id).await);
        assert_not_found(caller.cancel(id).await);
    }
    assert_eq!(
        listed(&caller, &BreadcrumbQuery { limit: 100, ..BreadcrumbQuery::default() }).await,
        [response, request]
    );
    assert_eq!(listed(&caller, &BreadcrumbQuery::of_schema(schema_names::TOOL_RESPONSE)).await, [response]);
    assert!(listed(&caller, &BreadcrumbQuery::of_schema("note.v1")).await.is_empty());
    let found = caller.search(&Search { q: Some("walrus".into()), nn: 10, ..Search::default() }).await.unwrap();
    let found: Vec<Uuid> = found.items.iter().map(|item| item.id).collect();
    assert!(found.iter().all(|id| [request, response].contains(id)), "{found:?}");

    // The response stays readable when its request is gone.
    author.delete(request, None).await.unwrap();
    assert_eq!(caller.view(response).await.unwrap().id, response);
    assert_eq!(caller.call(request).await.unwrap().response, Some(response));
    assert_not_found(other.call(request).await);
}

async fn listed(agent: &Agent, query: &BreadcrumbQuery) -> Vec<Uuid> {
    agent.list(query).await.unwrap().into_iter().map(|item| item.id).collect()
}

pub async fn a_caller_hears_only_of_its_own_calls(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let (caller, other) =
        (harness.agent_with(tenant, &[Role::Caller]).await, harness.agent_with(tenant, &[Role::Caller]).await);
    let author = harness.agent(tenant).await;
    let mut live = caller.events(Some(EventNumber(0))).await.unwrap();
    author.create(note("Open"), None).await.unwrap();
    called(&other, &author).await;
    let (first, answer) = called(&caller, &author).await;
    called(&other, &author).await;
    let last = caller.create(ToolRequest::record("echo", json!({}), None, None), None).await.unwrap().id;
    let mut resumed = caller.events(Some(EventNumber(0))).await.unwrap();
    for events in [&mut live, &mut resumed] {
        for expected in [first, answer, last] {
            assert_eq!(next(events).await.breadcrumb_id, expected);
        }
    }
}

/// What a tool does for a caller, its runner does: it reads what every agent can read.
pub async fn a_runner_that_acts_for_a_caller_is_not_limited_to_its_calls(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let (caller, runner) =
        (harness.agent_with(tenant, &[Role::Caller]).await, harness.agent_with(tenant, &[Role::Runner]).await);
    let author = harness.agent(tenant).await;
    let open = author.create(note("Open"), None).await.unwrap().id;
    let hidden = rcrt_breadcrumb::NewBreadcrumb { visibility: Visibility::Private, ..note("Hidden") };
    let hidden = author.create(hidden, None).await.unwrap().id;
    let acting = runner.on_behalf_of(id_of(&caller)).unwrap();
    assert_eq!(acting.view(open).await.unwrap().id, open);
    assert_not_found(acting.view(hidden).await);
    let written: Result<_, StoreError> = acting.create(note("Written by a tool"), None).await;
    written.unwrap();
}
