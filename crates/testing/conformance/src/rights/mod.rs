//! Who can see and change which record.

mod callers;
mod event_rights;
mod grants;
mod old_versions;

pub use callers::*;
pub use event_rights::*;
pub use grants::*;
pub use old_versions::*;

use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, BreadcrumbQuery, CURATORS_TOOL_TAG, DRAFT_TAG, NewBreadcrumb, Role, Search,
    Sensitivity, Visibility, schema_names,
};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Agent, Harness, assert_forbidden, assert_not_found, note, noted, object};

/// The kinds of agents that can have access to a record.
struct Participants {
    author: Agent,
    colleague: Agent,
    curator: Agent,
    runner: Agent,
    stranger: Agent,
}

impl Participants {
    async fn of(harness: &impl Harness) -> Self {
        let (tenant, elsewhere) = (harness.tenant().await, harness.tenant().await);
        let common = [Role::Emitter, Role::Subscriber];
        Self {
            author: harness.agent_with(tenant, &common).await,
            colleague: harness.agent_with(tenant, &common).await,
            curator: harness.agent_with(tenant, &[Role::Curator]).await,
            runner: harness.agent_with(tenant, &[Role::Runner]).await,
            stranger: harness.agent_with(elsewhere, &[Role::Curator, Role::Emitter, Role::Subscriber]).await,
        }
    }
}

fn private(title: &str) -> NewBreadcrumb {
    NewBreadcrumb {
        visibility: Visibility::Private,
        ..noted(title, json!({"text": format!("{title} walrus")}), &["kept"])
    }
}

fn id_of(agent: &Agent) -> Uuid {
    agent.identity.agent_id
}

/// Tries which of the rights the agent has on the record. Takes the record's current version, and
/// also returns its version afterwards.
async fn tried(agent: &Agent, id: Uuid, mut version: i64) -> (Vec<&'static str>, i64) {
    let mut may = Vec::new();
    match agent.view(id).await {
        Ok(view) => {
            assert_eq!(view.id, id);
            may.push("view");
        }
        Err(error) => assert_not_found(Err::<(), _>(error)),
    }
    let (full, history) = (agent.get(id).await, agent.history(id).await);
    assert_eq!(full.is_ok(), history.is_ok());
    match full {
        Ok(_) => may.push("full"),
        Err(error) => assert_not_found(Err::<(), _>(error)),
    }
    if listed(agent, id).await {
        may.push("list");
    }
    let changes = BreadcrumbChanges { description: Some("changed".into()), ..BreadcrumbChanges::default() };
    match agent.update(id, version, changes).await {
        Ok(written) => {
            assert_eq!((written.id, written.version), (id, version + 1));
            // The response contains no more than the agent can read.
            let reads = may.contains(&"view");
            assert_eq!(written.context.contains_key("text"), reads, "{may:?} {written:?}");
            version += 1;
            may.push("update");
        }
        Err(error) => assert_not_found(Err::<(), _>(error)),
    }
    (may, version)
}

async fn listed(agent: &Agent, id: Uuid) -> bool {
    let found = agent.list(&BreadcrumbQuery::tagged("kept")).await.unwrap();
    found.iter().any(|item| item.id == id)
}

pub async fn a_private_record_is_for_its_creator_curators_and_runners(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let id = agents.author.create(private("Diary"), None).await.unwrap().id;
    let mut version = 1;
    for (who, agent, expected) in [
        ("author", &agents.author, vec!["view", "full", "list", "update"]),
        ("colleague", &agents.colleague, vec![]),
        ("curator", &agents.curator, vec!["view", "full", "list", "update"]),
        ("runner", &agents.runner, vec!["view", "full", "list", "update"]),
        ("stranger", &agents.stranger, vec![]),
    ] {
        let (may, now) = tried(agent, id, version).await;
        assert_eq!(may, expected, "{who}");
        version = now;
    }
    for agent in [&agents.colleague, &agents.stranger] {
        assert_not_found(agent.delete(id, None).await);
        let search = Search { include_context: true, ..Search::of("walrus") };
        assert!(agent.search(&search).await.unwrap().items.is_empty());
    }
    agents.author.delete(id, None).await.unwrap();
    assert_not_found(agents.curator.get(id).await);
}

/// The store sets the curator's tag on a tool, only for versions that a curator writes.
pub async fn only_the_store_sets_the_curators_tag(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let tool = |tags: &[&str]| {
        let context = object(json!({"name": "echo", "code": {"language": "javascript", "source": ""}}));
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        NewBreadcrumb { schema_name: Some(schema_names::TOOL_CODE.into()), context, tags, ..note("a tool") }
    };
    let is_curators =
        async |id: Uuid| agents.curator.get(id).await.unwrap().tags.contains(&CURATORS_TOOL_TAG.to_owned());
    let forged = agents.author.create(tool(&["kept", CURATORS_TOOL_TAG]), None).await.unwrap().id;
    assert_eq!(agents.curator.get(forged).await.unwrap().tags, ["kept"]);
    let change = |tags: Option<&[&str]>| BreadcrumbChanges {
        tags: tags.map(|tags| tags.iter().map(|tag| (*tag).to_owned()).collect()),
        title: Some(Uuid::new_v4().to_string()),
        ..BreadcrumbChanges::default()
    };
    for (version, (by, tags, expected)) in (1..).zip([
        (&agents.author, Some(&["kept", CURATORS_TOOL_TAG][..]), false),
        (&agents.curator, None, true),
        (&agents.author, None, false),
        (&agents.curator, Some(&["kept"][..]), true),
    ]) {
        by.update(forged, version, change(tags)).await.unwrap();
        assert_eq!(is_curators(forged).await, expected, "version {}", version + 1);
    }
    let curators = agents.curator.create(tool(&[]), None).await.unwrap().id;
    assert!(is_curators(curators).await);
    // A record that a runner writes on behalf of an agent belongs to that agent.
    let record = tool(&[CURATORS_TOOL_TAG]);
    let for_curator = agents.runner.on_behalf_of(id_of(&agents.curator)).unwrap();
    let written = for_curator.create(record, None).await.unwrap().id;
    assert!(!is_curators(written).await);
    // With another schema it is an ordinary tag, until the record becomes a tool.
    let noted = agents.author.create(noted("a note", json!({}), &[CURATORS_TOOL_TAG]), None).await.unwrap().id;
    let becomes =
        BreadcrumbChanges { schema_name: Some(schema_names::TOOL_CODE.into()), ..BreadcrumbChanges::default() };
    agents.author.update(noted, 1, becomes).await.unwrap();
    assert!(!is_curators(noted).await);
    // The history has the schema of each version, so the note's tag does not count for a tool.
    let schemas: Vec<_> =
        agents.author.history(noted).await.unwrap().into_iter().map(|version| version.schema_name).collect();
    assert_eq!(schemas, [Some(schema_names::TOOL_CODE.to_owned()), Some("note.v1".to_owned())]);
}

/// Also a draft, a retired tool, and a record that becomes a tool. A grant on the record does not
/// change that.
pub async fn only_its_author_or_a_curator_changes_a_tool(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let for_colleague = agents.runner.on_behalf_of(id_of(&agents.colleague)).unwrap();
    let for_author = agents.runner.on_behalf_of(id_of(&agents.author)).unwrap();
    let titled = |title: &str| BreadcrumbChanges { title: Some(title.into()), ..BreadcrumbChanges::default() };
    let becomes = |name: &str| BreadcrumbChanges { schema_name: Some(name.into()), ..BreadcrumbChanges::default() };
    for (schema, tags) in [
        (schema_names::TOOL_CODE, &[][..]),
        (schema_names::TOOL_CODE, &[DRAFT_TAG]),
        (schema_names::TOOL_V1, &[]),
        (schema_names::TOOL_RETIRED, &[]),
    ] {
        let tool = NewBreadcrumb { schema_name: Some(schema.into()), ..noted("A tool", json!({"name": "echo"}), tags) };
        let id = agents.author.create(tool.clone(), None).await.unwrap().id;
        let grant = AclChange::agent(id, id_of(&agents.colleague), [Action::Update, Action::Delete]);
        agents.author.grant(&grant).await.unwrap();
        for other in [&*agents.colleague.store, &*for_colleague] {
            assert_forbidden(other.update(id, 1, titled("Taken")).await);
            assert_forbidden(other.update(id, 1, becomes("note.v1")).await);
            assert_forbidden(other.delete(id, None).await);
        }
        agents.author.update(id, 1, titled("By its author")).await.unwrap();
        for_author.update(id, 2, titled("By a call of its author")).await.unwrap();
        agents.curator.update(id, 3, titled("By a curator")).await.unwrap();
        agents.runner.update(id, 4, titled("By the runtime")).await.unwrap();
        agents.author.delete(id, Some(5)).await.unwrap();
        let by_runtime = agents.runner.create(tool, None).await.unwrap().id;
        assert_forbidden(agents.author.update(by_runtime, 1, titled("Taken")).await);
        agents.curator.delete(by_runtime, None).await.unwrap();
    }
    let noted = agents.author.create(note("A note"), None).await.unwrap().id;
    agents.colleague.update(noted, 1, titled("By a colleague")).await.unwrap();
    assert_forbidden(agents.colleague.update(noted, 2, becomes(schema_names::TOOL_CODE)).await);
    agents.author.update(noted, 2, becomes(schema_names::TOOL_CODE)).await.unwrap();
}

pub async fn a_private_request_is_hidden_and_runs(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let request = NewBreadcrumb { visibility: Visibility::Private, ..crate::harness::request() };
    let id = agents.author.create(request, None).await.unwrap().id;
    assert_not_found(agents.colleague.call(id).await);
    assert_not_found(agents.colleague.cancel(id).await);
    assert_eq!(agents.author.call(id).await.unwrap().request, id);
    let claimed = agents.runner.claim(&crate::harness::claim_of(10)).await.unwrap();
    assert_eq!(claimed.iter().map(|claim| claim.request.id).collect::<Vec<_>>(), [id]);
}

pub async fn every_tenant_can_view_a_public_record(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let open = NewBreadcrumb { visibility: Visibility::Public, ..noted("Open", json!({"text": "hi"}), &["kept"]) };
    let secret = NewBreadcrumb { sensitivity: Sensitivity::Secret, ..open.clone() };
    let id = agents.author.create(open, None).await.unwrap().id;
    assert_eq!(agents.stranger.view(id).await.unwrap().context["text"], "hi");
    assert_eq!(tried(&agents.stranger, id, 1).await.0, ["view"]);
    assert_not_found(agents.stranger.delete(id, None).await);
    let secret = agents.author.create(secret, None).await.unwrap().id;
    assert_eq!(tried(&agents.stranger, secret, 1).await.0, Vec::<&str>::new());
}

pub async fn only_the_creator_or_a_curator_changes_visibility(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let id = agents.author.create(note("Team"), None).await.unwrap().id;
    let closing = BreadcrumbChanges { visibility: Some(Visibility::Private), ..BreadcrumbChanges::default() };
    assert_forbidden(agents.colleague.update(id, 1, closing.clone()).await);
    let exposing = BreadcrumbChanges { sensitivity: Some(Sensitivity::Secret), ..BreadcrumbChanges::default() };
    assert_forbidden(agents.colleague.update(id, 1, exposing).await);
    assert_forbidden(agents.colleague.grant(&AclChange::agent(id, id_of(&agents.colleague), Action::ALL)).await);
    assert_forbidden(agents.runner.grant(&AclChange::agent(id, id_of(&agents.runner), Action::ALL)).await);
    agents.author.update(id, 1, closing).await.unwrap();
    assert_not_found(agents.colleague.get(id).await);
    let opening = BreadcrumbChanges { visibility: Some(Visibility::Team), ..BreadcrumbChanges::default() };
    agents.curator.update(id, 2, opening).await.unwrap();
    assert_eq!(agents.colleague.get(id).await.unwrap().version, 3);
}

pub async fn a_secret_record_is_read_only_by_id(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let secret = NewBreadcrumb {
        sensitivity: Sensitivity::Secret,
        ..noted("Vault", json!({"word": "xylophone", "n": 1}), &["kept"])
    };
    let id = agents.author.create(secret, None).await.unwrap().id;
    let plain = agents.author.create(noted("Plain", json!({"word": "zither"}), &["kept"]), None).await.unwrap().id;
    assert_eq!(agents.colleague.get(id).await.unwrap().context["word"], "xylophone");
    assert_eq!(agents.colleague.view(id).await.unwrap().context["word"], "xylophone");
    let found = |q: &str| {
        let search = Search { include_context: true, ..Search::of(q) };
        let agent = agents.curator.clone();
        async move { agent.search(&search).await.unwrap().items }
    };
    assert!(found("xylophone").await.is_empty());
    let by_title = found("vault").await;
    assert_eq!((by_title[0].id, by_title[0].redacted), (id, true));
    assert_eq!(by_title[0].context.as_ref().unwrap().len(), 0);
    assert_eq!(found("zither").await[0].id, plain);
    let hiding = BreadcrumbChanges { sensitivity: Some(Sensitivity::Secret), ..BreadcrumbChanges::default() };
    agents.author.update(plain, 1, hiding).await.unwrap();
    assert!(found("zither").await.is_empty(), "the change removed its search words");
    let listed = agents.runner.list(&BreadcrumbQuery::tagged("kept")).await.unwrap();
    assert!(listed.iter().all(|item| item.redacted && item.context.as_ref().is_some_and(serde_json::Map::is_empty)));
    let bare = BreadcrumbQuery { include_context: false, ..BreadcrumbQuery::tagged("kept") };
    assert!(agents.runner.list(&bare).await.unwrap().iter().all(|item| !item.redacted && item.context.is_none()));
    let showing = BreadcrumbChanges { sensitivity: Some(Sensitivity::Low), ..BreadcrumbChanges::default() };
    agents.author.update(plain, 2, showing).await.unwrap();
    assert_eq!(found("zither").await[0].id, plain);
}

pub async fn a_runner_acts_for_an_agent_and_sees_no_more(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let id = agents.author.create(private("Diary"), None).await.unwrap().id;
    match agents.author.on_behalf_of(id_of(&agents.colleague)) {
        Err(error) => assert_forbidden(Err::<(), _>(error)),
        // Over HTTP this is refused at the first request.
        Ok(acting) => assert_forbidden(acting.get(id).await),
    }
    let for_colleague = agents.runner.on_behalf_of(id_of(&agents.colleague)).unwrap();
    assert_not_found(for_colleague.get(id).await);
    assert!(for_colleague.list(&BreadcrumbQuery::tagged("kept")).await.unwrap().is_empty());
    let for_author = agents.runner.on_behalf_of(id_of(&agents.author)).unwrap();
    assert_eq!(for_author.get(id).await.unwrap().id, id);
    let for_curator = agents.runner.on_behalf_of(id_of(&agents.curator)).unwrap();
    assert_eq!(for_curator.get(id).await.unwrap().id, id);
    assert!(for_curator.is_curator().await.unwrap());
    assert!(!for_colleague.is_curator().await.unwrap());
    // What it writes belongs to the runner, except private records and requests, which belong to
    // the agent.
    let kept = for_author.create(private("Kept"), None).await.unwrap().id;
    assert_eq!(agents.author.get(kept).await.unwrap().created_by, Some(id_of(&agents.author)));
    let asked = for_author.create(crate::harness::request(), None).await.unwrap().id;
    assert_eq!(agents.author.get(asked).await.unwrap().created_by, Some(id_of(&agents.author)));
    let written = for_author.create(note("Written"), None).await.unwrap().id;
    assert_eq!(agents.author.get(written).await.unwrap().created_by, Some(id_of(&agents.runner)));
}

pub async fn records_of_a_private_request_belong_to_its_author(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let request = || NewBreadcrumb { visibility: Visibility::Private, ..crate::harness::request() };
    // Completed by a runner on behalf of the calling agent.
    let asked = agents.author.create(request(), None).await.unwrap().id;
    let claim = agents.runner.claim(&crate::harness::claim_of(1)).await.unwrap().remove(0);
    agents.runner.start(claim.lease, 1).await.unwrap();
    let answer = NewBreadcrumb {
        visibility: Visibility::Private,
        ..crate::harness::answer_to(&claim, json!({"word": "quiet"}))
    };
    let for_author = agents.runner.on_behalf_of(id_of(&agents.author)).unwrap();
    let response = for_author.complete(claim.lease, answer).await.unwrap();
    assert_eq!(agents.author.call(asked).await.unwrap().response, Some(response));
    assert_eq!(agents.author.get(response).await.unwrap().visibility, Visibility::Private);
    assert_not_found(agents.colleague.get(response).await);
    // Completed by the store.
    let asked = agents.author.create(request(), None).await.unwrap().id;
    let response = agents.author.cancel(asked).await.unwrap().response.unwrap();
    assert_eq!(agents.author.get(response).await.unwrap().visibility, Visibility::Private);
    assert_not_found(agents.colleague.get(response).await);
}
