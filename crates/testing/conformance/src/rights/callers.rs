//! An agent with the role `caller` writes requests and reads its own calls, and nothing else.

use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, BreadcrumbQuery, EventNumber, NewBreadcrumb, Records, Role, Search,
    TRIGGERED_BY_TAG, ToolRequest, Visibility, schema_names,
};
use serde_json::json;
use uuid::Uuid;

use super::id_of;
use crate::harness::{
    Agent, Harness, answer_to, assert_forbidden, assert_not_found, claim_of, fields, next, note, noted, request,
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
        let record = NewBreadcrumb { schema_name: schema.map(str::to_owned), ..tool.clone() };
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
    let public = NewBreadcrumb { visibility: Visibility::Public, ..note("walrus") };
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
        listed(&*caller, &BreadcrumbQuery { limit: 100, ..BreadcrumbQuery::default() }).await,
        [response, request]
    );
    assert_eq!(listed(&*caller, &BreadcrumbQuery::of_schema(schema_names::TOOL_RESPONSE)).await, [response]);
    assert!(listed(&*caller, &BreadcrumbQuery::of_schema("note.v1")).await.is_empty());
    let found = caller.search(&Search { q: Some("walrus".into()), nn: 10, ..Search::default() }).await.unwrap();
    let found: Vec<Uuid> = found.items.iter().map(|item| item.id).collect();
    assert!(found.iter().all(|id| [request, response].contains(id)), "{found:?}");

    // The response stays readable when its request is gone.
    author.delete(request, None).await.unwrap();
    assert_eq!(caller.view(response).await.unwrap().id, response);
    assert_eq!(caller.call(request).await.unwrap().response, Some(response));
    assert_not_found(other.call(request).await);
}

async fn listed(agent: &(impl Records + ?Sized), query: &BreadcrumbQuery) -> Vec<Uuid> {
    agent.list(query).await.unwrap().into_iter().map(|item| item.id).collect()
}

pub async fn a_caller_hears_only_of_its_own_calls(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let (caller, other) =
        (harness.agent_with(tenant, &[Role::Caller]).await, harness.agent_with(tenant, &[Role::Caller]).await);
    let author = harness.agent(tenant).await;
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let mut live = caller.events(Some(EventNumber(0))).await.unwrap();
    author.create(note("Open"), None).await.unwrap();
    called(&other, &author).await;
    let (first, answer) = called(&caller, &author).await;
    called(&other, &author).await;
    // The runner writes the progress of a call for its caller.
    let progress = NewBreadcrumb {
        schema_name: Some(schema_names::TOOL_PROGRESS.into()),
        ..noted("Progress", json!({"message": "half"}), &["tool:progress"])
    };
    assert_forbidden(caller.create(progress.clone(), None).await);
    runner.on_behalf_of(id_of(&other)).unwrap().create(progress.clone(), None).await.unwrap();
    let acting = runner.on_behalf_of(id_of(&caller)).unwrap();
    let progress = acting.create(progress, None).await.unwrap().id;
    acting.update(progress, 1, BreadcrumbChanges { title: Some("More".into()), ..Default::default() }).await.unwrap();
    assert_eq!(caller.get(progress).await.unwrap().version, 2);
    assert_not_found(other.get(progress).await);
    let last = caller.create(ToolRequest::record("echo", json!({}), None, None), None).await.unwrap().id;
    let mut resumed = caller.events(Some(EventNumber(0))).await.unwrap();
    for events in [&mut live, &mut resumed] {
        for expected in [first, answer, progress, progress, last] {
            assert_eq!(next(events).await.breadcrumb_id, expected);
        }
    }
}

/// A tool that runs for a caller: its runner acts for that agent.
pub async fn a_tool_of_a_caller_reads_its_calls_and_what_was_created_for_it(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let (caller, runner) =
        (harness.agent_with(tenant, &[Role::Caller]).await, harness.agent_with(tenant, &[Role::Runner]).await);
    let (author, other) = (harness.agent(tenant).await, harness.agent_with(tenant, &[Role::Caller]).await);
    let (request, response) = called(&caller, &author).await;
    let (other_request, other_response) = called(&other, &author).await;
    let open = author.create(noted("Open", json!({"text": "walrus"}), &["shared"]), None).await.unwrap().id;
    let acting = runner.on_behalf_of(id_of(&caller)).unwrap();
    let acting_for_other = runner.on_behalf_of(id_of(&other)).unwrap();
    let own = acting.create(noted("Own", json!({"text": "walrus"}), &["shared"]), None).await.unwrap().id;
    let of_other = acting_for_other.create(noted("Other", json!({}), &["shared"]), None).await.unwrap().id;

    for id in [request, response, own] {
        assert_eq!(acting.view(id).await.unwrap().id, id);
        assert_eq!(acting.history(id).await.unwrap().len(), 1);
    }
    for id in [other_request, other_response, open, of_other] {
        assert_not_found(acting.view(id).await);
        assert_not_found(acting.get(id).await);
        assert_not_found(acting.history(id).await);
        assert_not_found(acting.update(id, 1, BreadcrumbChanges::default()).await);
        assert_not_found(acting.delete(id, None).await);
    }
    assert_eq!(listed(&*acting, &BreadcrumbQuery::tagged("shared")).await, [own]);
    let every = BreadcrumbQuery { limit: 100, ..BreadcrumbQuery::default() };
    assert_eq!(listed(&*acting, &every).await, [own, response, request]);
    let found = acting.search(&Search { q: Some("walrus".into()), nn: 10, ..Search::default() }).await.unwrap();
    let found: Vec<Uuid> = found.items.iter().map(|item| item.id).collect();
    assert!(found.contains(&own) && found.iter().all(|id| [request, response, own].contains(id)), "{found:?}");
    // The caller itself sees its calls alone; other agents see what its tools wrote.
    assert_not_found(caller.view(own).await);
    assert_eq!(author.view(own).await.unwrap().id, own);

    acting.update(own, 1, BreadcrumbChanges { title: Some("Changed".into()), ..Default::default() }).await.unwrap();
    acting.delete(own, None).await.unwrap();
}

pub async fn a_tool_of_a_caller_writes_no_definitions(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let author = harness.agent(tenant).await;
    // With the role `subscriber` it reads everything, and publishes nothing either.
    for roles in [[Role::Caller].as_slice(), &[Role::Caller, Role::Subscriber]] {
        let caller = harness.agent_with(tenant, roles).await;
        let acting = runner.on_behalf_of(id_of(&caller)).unwrap();
        let of_others = author.create(note("Of others"), None).await.unwrap().id;
        let own = acting.create(note("Own"), None).await.unwrap().id;
        for schema in
            [schema_names::TOOL_CODE, schema_names::TOOL_V1, schema_names::TOOL_GUIDE, schema_names::SCHEMA_DEFINITION]
        {
            let context = json!({"name": "mine", "schema_name": "mine.v1", "schema": {}});
            let record = noted("Definition", context, &["tool"]);
            let record = NewBreadcrumb { schema_name: Some(schema.into()), ..record };
            assert_forbidden(acting.create(record, None).await);
            let into = BreadcrumbChanges { schema_name: Some(schema.into()), ..BreadcrumbChanges::default() };
            // No record becomes the definition of a schema, whoever asks: that is invalid.
            match schema {
                schema_names::SCHEMA_DEFINITION => assert!(acting.update(own, 1, into).await.is_err()),
                _ => assert_forbidden(acting.update(own, 1, into).await),
            }
        }
        assert!(acting.update(of_others, 1, BreadcrumbChanges::default()).await.is_err());
        assert!(acting.delete(of_others, None).await.is_err());
        let request = acting.create(request(), None).await.unwrap().id;
        assert_forbidden(acting.delete(request, None).await);
        let change = AclChange {
            breadcrumb_id: own,
            grantee_agent_id: Some(id_of(&author)),
            grantee_owner_id: None,
            action: Some(Action::ReadFull),
            actions: Vec::new(),
        };
        assert_forbidden(acting.grant(&change).await);
    }
}

/// An agent chooses which call its request belongs to only through its tools.
pub async fn only_a_runner_names_the_parent_of_a_request(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let author = harness.agent(tenant).await;
    let parent = author.create(request(), None).await.unwrap().id;
    let child = || {
        let mut child = request();
        child.context.insert("parent".into(), parent.to_string().into());
        child
    };
    for roles in [[Role::Caller].as_slice(), &[Role::Emitter], &Role::ALL] {
        let agent = harness.agent_with(tenant, roles).await;
        assert_eq!(fields(agent.create(child(), None).await), ["context.parent"]);
        assert_eq!(fields(agent.create(child(), Some("key")).await), ["context.parent"]);
        let acting = runner.on_behalf_of(id_of(&agent)).unwrap();
        let request = acting.create(child(), None).await.unwrap().id;
        assert_eq!(author.call_details(request).await.unwrap().summary.parent, Some(parent));
    }
}

/// What a record triggers counts as a call below the one that its tag names.
pub async fn only_a_runner_names_the_call_that_wrote_a_record(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let tags = |version: i64| vec!["kept".to_owned(), format!("{TRIGGERED_BY_TAG}{}:{version}", Uuid::nil())];
    let marked = || NewBreadcrumb { tags: tags(1), ..note("a note") };
    for roles in [[Role::Emitter].as_slice(), &Role::ALL] {
        let agent = harness.agent_with(tenant, roles).await;
        let own = agent.create(marked(), None).await.unwrap().id;
        assert_eq!(agent.get(own).await.unwrap().tags, ["kept"]);
        let forging = BreadcrumbChanges { tags: Some(tags(2)), ..BreadcrumbChanges::default() };
        assert_eq!(agent.update(own, 1, forging).await.unwrap().tags, ["kept"]);
        let acting = runner.on_behalf_of(id_of(&agent)).unwrap();
        let of_call = acting.create(marked(), None).await.unwrap().id;
        assert_eq!(agent.get(of_call).await.unwrap().tags, tags(1));
    }
}
