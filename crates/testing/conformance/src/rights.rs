//! Who can see and change which record.

use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, BreadcrumbQuery, CURATORS_TOOL_TAG, Event, EventNumber, EventStream,
    NewBreadcrumb, Role, Search, Selector, Sensitivity, Visibility, schema_names,
};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Agent, Harness, alone, assert_forbidden, assert_not_found, fields, next, note, noted, object};

/// The kinds of agents that can have access to a record.
struct Cast {
    author: Agent,
    colleague: Agent,
    curator: Agent,
    runner: Agent,
    stranger: Agent,
}

impl Cast {
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
    let cast = Cast::of(harness).await;
    let id = cast.author.create(private("Diary"), None).await.unwrap().id;
    let mut version = 1;
    for (who, agent, expected) in [
        ("author", &cast.author, vec!["view", "full", "list", "update"]),
        ("colleague", &cast.colleague, vec![]),
        ("curator", &cast.curator, vec!["view", "full", "list", "update"]),
        ("runner", &cast.runner, vec!["view", "full", "list", "update"]),
        ("stranger", &cast.stranger, vec![]),
    ] {
        let (may, now) = tried(agent, id, version).await;
        assert_eq!(may, expected, "{who}");
        version = now;
    }
    for agent in [&cast.colleague, &cast.stranger] {
        assert_not_found(agent.delete(id, None).await);
        let search = Search { include_context: true, ..Search::of("walrus") };
        assert!(agent.search(&search).await.unwrap().items.is_empty());
    }
    cast.author.delete(id, None).await.unwrap();
    assert_not_found(cast.curator.get(id).await);
}

/// The store sets the curator's tag on a tool, only for versions that a curator writes.
pub async fn only_the_store_sets_the_curators_tag(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let tool = |tags: &[&str]| {
        let context = object(json!({"name": "echo", "code": {"language": "javascript", "source": ""}}));
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        NewBreadcrumb { schema_name: Some(schema_names::TOOL_CODE.into()), context, tags, ..note("a tool") }
    };
    let is_curators = async |id: Uuid| cast.curator.get(id).await.unwrap().tags.contains(&CURATORS_TOOL_TAG.to_owned());
    let forged = cast.author.create(tool(&["kept", CURATORS_TOOL_TAG]), None).await.unwrap().id;
    assert_eq!(cast.curator.get(forged).await.unwrap().tags, ["kept"]);
    let change = |tags: Option<&[&str]>| BreadcrumbChanges {
        tags: tags.map(|tags| tags.iter().map(|tag| (*tag).to_owned()).collect()),
        title: Some(Uuid::new_v4().to_string()),
        ..BreadcrumbChanges::default()
    };
    for (version, (by, tags, expected)) in (1..).zip([
        (&cast.colleague, Some(&["kept", CURATORS_TOOL_TAG][..]), false),
        (&cast.curator, None, true),
        (&cast.colleague, None, false),
        (&cast.curator, Some(&["kept"][..]), true),
    ]) {
        by.update(forged, version, change(tags)).await.unwrap();
        assert_eq!(is_curators(forged).await, expected, "version {}", version + 1);
    }
    let curators = cast.curator.create(tool(&[]), None).await.unwrap().id;
    assert!(is_curators(curators).await);
    // A record that a runner writes on behalf of an agent belongs to that agent.
    let record = tool(&[CURATORS_TOOL_TAG]);
    let in_name_of_a_curator = cast.runner.acting_for(id_of(&cast.curator)).unwrap();
    let written = in_name_of_a_curator.create(record, None).await.unwrap().id;
    assert!(!is_curators(written).await);
    // With another schema it is an ordinary tag, until the record becomes a tool.
    let noted = cast.author.create(noted("a note", json!({}), &[CURATORS_TOOL_TAG]), None).await.unwrap().id;
    let becomes =
        BreadcrumbChanges { schema_name: Some(schema_names::TOOL_CODE.into()), ..BreadcrumbChanges::default() };
    cast.author.update(noted, 1, becomes).await.unwrap();
    assert!(!is_curators(noted).await);
    // The history has the schema of each version, so the note's tag does not count for a tool.
    let schemas: Vec<_> =
        cast.author.history(noted).await.unwrap().into_iter().map(|version| version.schema_name).collect();
    assert_eq!(schemas, [Some(schema_names::TOOL_CODE.to_owned()), Some("note.v1".to_owned())]);
}

pub async fn a_private_request_is_hidden_and_runs(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let request = NewBreadcrumb { visibility: Visibility::Private, ..crate::harness::request() };
    let id = cast.author.create(request, None).await.unwrap().id;
    assert_not_found(cast.colleague.call(id).await);
    assert_not_found(cast.colleague.cancel(id).await);
    assert_eq!(cast.author.call(id).await.unwrap().request, id);
    let claimed = cast.runner.claim(&crate::harness::claim_of(10)).await.unwrap();
    assert_eq!(claimed.iter().map(|claim| claim.request.id).collect::<Vec<_>>(), [id]);
}

pub async fn each_action_grants_only_its_right(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let (colleague, stranger) = (id_of(&cast.colleague), id_of(&cast.stranger));
    let abroad = cast.stranger.identity.owner_id;
    let whose = |to: usize, id: Uuid, actions: Vec<Action>| match to {
        0 => AclChange::agent(id, colleague, actions),
        1 => AclChange::agent(id, stranger, actions),
        _ => AclChange::tenant(id, abroad, actions),
    };
    for to in 0..3 {
        let grantee = if to == 0 { &cast.colleague } else { &cast.stranger };
        for (action, expected) in [
            (Action::ReadContext, vec!["view", "list"]),
            (Action::ReadFull, vec!["view", "full", "list"]),
            (Action::Update, vec!["update"]),
            (Action::Delete, vec![]),
            (Action::Subscribe, vec![]),
        ] {
            let id = cast.author.create(private("Shared"), None).await.unwrap().id;
            let change = whose(to, id, vec![action]);
            cast.author.grant(&change).await.unwrap();
            let (may, version) = tried(grantee, id, 1).await;
            assert_eq!(may, expected, "{action:?} {to}");
            // No other agent got access.
            let others = if to == 0 { &cast.stranger } else { &cast.colleague };
            assert_eq!(tried(others, id, version).await.0, Vec::<&str>::new(), "{action:?} {to}");
            // A revocation takes effect at once.
            assert_eq!(cast.author.revoke(&change).await.unwrap(), 1);
            assert_eq!(tried(grantee, id, version).await.0, Vec::<&str>::new(), "{action:?} {to} revoked");
            assert_not_found(grantee.delete(id, None).await);
            assert_eq!(cast.author.revoke(&change).await.unwrap(), 0);
            cast.author.grant(&whose(to, id, vec![action])).await.unwrap();
            let deleted = grantee.delete(id, Some(version)).await;
            if action == Action::Delete {
                deleted.unwrap();
                assert_not_found(cast.author.get(id).await);
            } else {
                assert_not_found(deleted);
            }
        }
    }
    // A grant to another agent or another tenant does not count for this one.
    let id = cast.author.create(private("Elsewhere"), None).await.unwrap().id;
    let other = alone(harness).await;
    cast.author.grant(&AclChange::agent(id, id_of(&other), Action::ALL)).await.unwrap();
    cast.author.grant(&AclChange::tenant(id, cast.author.identity.owner_id, [Action::ReadContext])).await.unwrap();
    assert_eq!(tried(&cast.stranger, id, 1).await.0, Vec::<&str>::new());
    assert_eq!(tried(&cast.colleague, id, 1).await.0, ["view", "list"]);
}

pub async fn a_shared_record_names_its_tenant(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let stranger = id_of(&cast.stranger);
    let shared = cast.author.create(noted("Shared", json!({"n": 1}), &["kept"]), None).await.unwrap().id;
    let tool = NewBreadcrumb { schema_name: Some("tool.code.v1".into()), ..noted("Tool", json!({}), &["kept"]) };
    let tool = cast.author.create(tool, None).await.unwrap().id;
    for id in [shared, tool] {
        cast.author.grant(&AclChange::agent(id, stranger, [Action::ReadContext])).await.unwrap();
    }
    let own = cast.stranger.create(noted("Own", json!({}), &["kept"]), None).await.unwrap().id;
    let found = cast.stranger.list(&BreadcrumbQuery::tagged("kept")).await.unwrap();
    let found: Vec<_> = found.iter().map(|item| (item.id, item.owner_id)).collect();
    // Records that the runtime acts on are not included: no tenant can give tools to another.
    assert_eq!(found, [(own, None), (shared, Some(cast.author.identity.owner_id))]);
    assert_eq!(cast.stranger.view(tool).await.unwrap().id, tool);
    let narrowed = Selector { any_tags: vec!["kept".into()], ..Selector::default() };
    let page = BreadcrumbQuery { selector: narrowed, limit: 1, offset: 1, ..BreadcrumbQuery::default() };
    assert_eq!(cast.stranger.list(&page).await.unwrap()[0].id, shared);
}

pub async fn every_tenant_can_view_a_public_record(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let open = NewBreadcrumb { visibility: Visibility::Public, ..noted("Open", json!({"text": "hi"}), &["kept"]) };
    let secret = NewBreadcrumb { sensitivity: Sensitivity::Secret, ..open.clone() };
    let id = cast.author.create(open, None).await.unwrap().id;
    assert_eq!(cast.stranger.view(id).await.unwrap().context["text"], "hi");
    assert_eq!(tried(&cast.stranger, id, 1).await.0, ["view"]);
    assert_not_found(cast.stranger.delete(id, None).await);
    let secret = cast.author.create(secret, None).await.unwrap().id;
    assert_eq!(tried(&cast.stranger, secret, 1).await.0, Vec::<&str>::new());
}

pub async fn only_the_creator_or_a_curator_changes_visibility(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let id = cast.author.create(note("Team"), None).await.unwrap().id;
    let closing = BreadcrumbChanges { visibility: Some(Visibility::Private), ..BreadcrumbChanges::default() };
    assert_forbidden(cast.colleague.update(id, 1, closing.clone()).await);
    let exposing = BreadcrumbChanges { sensitivity: Some(Sensitivity::Secret), ..BreadcrumbChanges::default() };
    assert_forbidden(cast.colleague.update(id, 1, exposing).await);
    assert_forbidden(cast.colleague.grant(&AclChange::agent(id, id_of(&cast.colleague), Action::ALL)).await);
    assert_forbidden(cast.runner.grant(&AclChange::agent(id, id_of(&cast.runner), Action::ALL)).await);
    cast.author.update(id, 1, closing).await.unwrap();
    assert_not_found(cast.colleague.get(id).await);
    let opening = BreadcrumbChanges { visibility: Some(Visibility::Team), ..BreadcrumbChanges::default() };
    cast.curator.update(id, 2, opening).await.unwrap();
    assert_eq!(cast.colleague.get(id).await.unwrap().version, 3);
}

pub async fn grants_are_listed_for_those_concerned(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let (one, two) = (
        cast.author.create(private("One"), None).await.unwrap().id,
        cast.curator.create(private("Two"), None).await.unwrap().id,
    );
    let to = id_of(&cast.stranger);
    let first = cast.author.grant(&AclChange::agent(one, to, [Action::Update])).await.unwrap();
    let again = cast.curator.grant(&AclChange::agent(one, to, [Action::ReadFull, Action::Update])).await.unwrap();
    assert_eq!(first, again, "one grantee has one grant");
    let tenant = cast.stranger.identity.owner_id;
    cast.curator.grant(&AclChange::tenant(two, tenant, [Action::Subscribe])).await.unwrap();
    let of_curator = cast.curator.grants(None).await.unwrap();
    assert_eq!(of_curator.iter().map(|entry| entry.breadcrumb_id).collect::<Vec<_>>(), [two, one]);
    assert_eq!((of_curator[0].grantee_agent_id, of_curator[0].grantee_owner_id), (None, Some(tenant)));
    assert_eq!((of_curator[1].grantee_agent_id, of_curator[1].grantee_owner_id), (Some(to), None));
    assert_eq!(of_curator[1].actions, [Action::ReadFull, Action::Update]);
    assert_eq!(cast.author.grants(None).await.unwrap(), of_curator[1..]);
    assert_eq!(cast.author.grants(Some(two)).await.unwrap(), []);
    assert_eq!(cast.curator.grants(Some(two)).await.unwrap(), of_curator[..1]);
    assert_eq!(cast.colleague.grants(None).await.unwrap(), []);
    assert_eq!(cast.stranger.grants(None).await.unwrap(), []);
    assert_eq!(cast.author.revoke(&AclChange::agent(one, to, [Action::Update])).await.unwrap(), 1);
    assert_eq!(cast.author.grants(None).await.unwrap()[0].actions, [Action::ReadFull]);
    cast.author.delete(one, None).await.unwrap();
    assert_eq!(cast.author.grants(None).await.unwrap(), []);
}

pub async fn an_invalid_grant_is_refused(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let id = cast.author.create(private("Kept"), None).await.unwrap().id;
    let to = id_of(&cast.stranger);
    let nobody = Uuid::new_v4();
    let good = AclChange::agent(id, to, [Action::Update]);
    let both = AclChange { grantee_owner_id: Some(cast.stranger.identity.owner_id), ..good.clone() };
    assert_eq!(fields(cast.author.grant(&both).await), ["grantee_owner_id"]);
    let none = AclChange { grantee_agent_id: None, ..good.clone() };
    assert_eq!(fields(cast.author.grant(&none).await), ["grantee_agent_id"]);
    assert_eq!(fields(cast.author.revoke(&none).await), ["grantee_agent_id"]);
    assert_eq!(fields(cast.author.grant(&AclChange::agent(id, to, [])).await), ["actions"]);
    let twice = AclChange { action: Some(Action::Update), ..good.clone() };
    assert_eq!(fields(cast.author.grant(&twice).await), ["action"]);
    assert_eq!(fields(cast.author.grant(&AclChange::agent(id, nobody, [Action::Update])).await), ["grantee_agent_id"]);
    assert_eq!(fields(cast.author.grant(&AclChange::tenant(id, nobody, [Action::Update])).await), ["grantee_owner_id"]);
    for missing in [nobody, cast.stranger.create(private("Theirs"), None).await.unwrap().id] {
        assert_not_found(cast.curator.grant(&AclChange::agent(missing, to, [Action::Update])).await);
        assert_not_found(cast.curator.revoke(&AclChange::agent(missing, to, [Action::Update])).await);
    }
    assert_not_found(cast.colleague.grant(&good).await);
    // Holding every right does not allow an agent to grant rights.
    cast.author.grant(&AclChange::agent(id, to, Action::ALL)).await.unwrap();
    assert_not_found(cast.stranger.grant(&good).await);
}

pub async fn a_secret_record_is_read_only_by_id(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let secret = NewBreadcrumb {
        sensitivity: Sensitivity::Secret,
        ..noted("Vault", json!({"word": "xylophone", "n": 1}), &["kept"])
    };
    let id = cast.author.create(secret, None).await.unwrap().id;
    let plain = cast.author.create(noted("Plain", json!({"word": "zither"}), &["kept"]), None).await.unwrap().id;
    assert_eq!(cast.colleague.get(id).await.unwrap().context["word"], "xylophone");
    assert_eq!(cast.colleague.view(id).await.unwrap().context["word"], "xylophone");
    let found = |q: &str| {
        let search = Search { include_context: true, ..Search::of(q) };
        let agent = cast.curator.clone();
        async move { agent.search(&search).await.unwrap().items }
    };
    assert!(found("xylophone").await.is_empty());
    let by_title = found("vault").await;
    assert_eq!((by_title[0].id, by_title[0].redacted), (id, true));
    assert_eq!(by_title[0].context.as_ref().unwrap().len(), 0);
    assert_eq!(found("zither").await[0].id, plain);
    let hiding = BreadcrumbChanges { sensitivity: Some(Sensitivity::Secret), ..BreadcrumbChanges::default() };
    cast.author.update(plain, 1, hiding).await.unwrap();
    assert!(found("zither").await.is_empty(), "the change removed its search words");
    let listed = cast.runner.list(&BreadcrumbQuery::tagged("kept")).await.unwrap();
    assert!(listed.iter().all(|item| item.redacted && item.context.as_ref().is_some_and(serde_json::Map::is_empty)));
    let bare = BreadcrumbQuery { include_context: false, ..BreadcrumbQuery::tagged("kept") };
    assert!(cast.runner.list(&bare).await.unwrap().iter().all(|item| !item.redacted && item.context.is_none()));
    let showing = BreadcrumbChanges { sensitivity: Some(Sensitivity::Low), ..BreadcrumbChanges::default() };
    cast.author.update(plain, 2, showing).await.unwrap();
    assert_eq!(found("zither").await[0].id, plain);
}

pub async fn a_runner_acts_for_an_agent_and_sees_no_more(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let id = cast.author.create(private("Diary"), None).await.unwrap().id;
    match cast.author.acting_for(id_of(&cast.colleague)) {
        Err(error) => assert_forbidden(Err::<(), _>(error)),
        // Over HTTP this is refused at the first request.
        Ok(acting) => assert_forbidden(acting.get(id).await),
    }
    let for_colleague = cast.runner.acting_for(id_of(&cast.colleague)).unwrap();
    assert_not_found(for_colleague.get(id).await);
    assert!(for_colleague.list(&BreadcrumbQuery::tagged("kept")).await.unwrap().is_empty());
    let for_author = cast.runner.acting_for(id_of(&cast.author)).unwrap();
    assert_eq!(for_author.get(id).await.unwrap().id, id);
    let for_curator = cast.runner.acting_for(id_of(&cast.curator)).unwrap();
    assert_eq!(for_curator.get(id).await.unwrap().id, id);
    // What it writes belongs to the runner, except private records and requests, which belong to
    // the agent.
    let kept = for_author.create(private("Kept"), None).await.unwrap().id;
    assert_eq!(cast.author.get(kept).await.unwrap().created_by, Some(id_of(&cast.author)));
    let asked = for_author.create(crate::harness::request(), None).await.unwrap().id;
    assert_eq!(cast.author.get(asked).await.unwrap().created_by, Some(id_of(&cast.author)));
    let written = for_author.create(note("Written"), None).await.unwrap().id;
    assert_eq!(cast.author.get(written).await.unwrap().created_by, Some(id_of(&cast.runner)));
}

/// The records of the next events, up to this one.
async fn heard_until(events: &mut EventStream, last: Uuid) -> Vec<Uuid> {
    let mut heard = Vec::new();
    loop {
        let id = next(events).await.breadcrumb_id;
        heard.push(id);
        if id == last {
            return heard;
        }
    }
}

pub async fn events_of_private_records_are_not_delivered(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let mut live = Vec::new();
    for agent in [&cast.author, &cast.colleague, &cast.curator, &cast.runner] {
        live.push(agent.events(Some(EventNumber(0))).await.unwrap());
    }
    let hidden = cast.author.create(private("Hidden"), None).await.unwrap().id;
    cast.author.update(hidden, 1, BreadcrumbChanges::default()).await.unwrap();
    let was_open = cast.author.create(note("Closed soon"), None).await.unwrap().id;
    let closing = BreadcrumbChanges { visibility: Some(Visibility::Private), ..BreadcrumbChanges::default() };
    cast.author.update(was_open, 1, closing).await.unwrap();
    cast.author.delete(hidden, None).await.unwrap();
    let open = cast.author.create(note("Open"), None).await.unwrap().id;
    let all = [hidden, hidden, was_open, was_open, hidden, open];
    for (who, events) in live.iter_mut().enumerate() {
        let heard = heard_until(events, open).await;
        if who == 1 {
            // Events from while it was open can have been received. Later ones are not.
            assert!(heard == [was_open, open] || heard == [open], "{heard:?}");
        } else {
            assert_eq!(heard, all, "{who}");
        }
    }
    // A subscriber that resumes later gets events by its present rights.
    let mut resumed = cast.colleague.events(Some(EventNumber(0))).await.unwrap();
    assert_eq!(heard_until(&mut resumed, open).await, [open]);
    let mut resumed = cast.author.events(Some(EventNumber(0))).await.unwrap();
    assert_eq!(heard_until(&mut resumed, open).await, all);
}

pub async fn a_grant_to_subscribe_opens_the_events_until_it_is_revoked(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let stranger = id_of(&cast.stranger);
    let whole_tenant = harness.agent_with(cast.stranger.identity.owner_id, &[Role::Subscriber]).await;
    for (grantee, change) in [
        (&cast.colleague, (false, id_of(&cast.colleague))),
        (&cast.stranger, (false, stranger)),
        (&whole_tenant, (true, cast.stranger.identity.owner_id)),
    ] {
        let of = |id| match change {
            (false, agent) => AclChange::agent(id, agent, [Action::Subscribe]),
            (true, tenant) => AclChange::tenant(id, tenant, [Action::Subscribe]),
        };
        let before = cast.author.create(private("Followed"), None).await.unwrap().id;
        let other = cast.author.create(private("Other"), None).await.unwrap().id;
        cast.author.grant(&of(before)).await.unwrap();
        let start = grantee.latest_event().await.unwrap();
        let mut live = grantee.events(Some(start)).await.unwrap();
        let own = async |title: &str| grantee_note(harness, grantee, title).await;
        let first = own("first").await;
        cast.author.update(before, 1, BreadcrumbChanges::default()).await.unwrap();
        cast.author.update(other, 1, BreadcrumbChanges::default()).await.unwrap();
        let second = own("second").await;
        let mut numbers = Vec::new();
        // It can start with what was written just before.
        let mut event = next(&mut live).await;
        while event.breadcrumb_id != first {
            event = next(&mut live).await;
        }
        numbers.push(event.number);
        for expected in [before, second] {
            let event = next(&mut live).await;
            assert_eq!(event.breadcrumb_id, expected);
            if expected == before {
                assert_eq!((event.owner_id, event.version), (cast.author.identity.owner_id, 2));
                assert_eq!(event.context["text"], "Followed walrus");
            }
            numbers.push(event.number);
        }
        assert!(numbers.is_sorted());
        // Resumed after each of them.
        let mut resumed = grantee.events(Some(numbers[0])).await.unwrap();
        assert_eq!(heard_until(&mut resumed, second).await, [before, second]);
        let mut resumed = grantee.events(Some(numbers[1])).await.unwrap();
        assert_eq!(heard_until(&mut resumed, second).await, [second]);

        cast.author.revoke(&of(before)).await.unwrap();
        cast.author.update(before, 2, BreadcrumbChanges::default()).await.unwrap();
        let third = own("third").await;
        assert_eq!(heard_until(&mut live, third).await, [third]);
        let mut resumed = grantee.events(Some(numbers[0])).await.unwrap();
        assert_eq!(heard_until(&mut resumed, third).await, [second, third]);
        // After a new grant, all events are received up to the deletion.
        cast.author.grant(&of(before)).await.unwrap();
        cast.author.delete(before, None).await.unwrap();
        let fourth = own("fourth").await;
        let heard = heard_until(&mut live, fourth).await;
        assert_eq!(heard, [before, fourth]);
    }
}

/// A record in the agent's tenant, by an agent that can write there.
async fn grantee_note(harness: &impl Harness, agent: &Agent, title: &str) -> Uuid {
    let writer = harness.agent_with(agent.identity.owner_id, &[Role::Emitter]).await;
    writer.create(note(title), None).await.unwrap().id
}

pub async fn a_runner_gets_no_events_of_other_tenants(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let abroad = cast.stranger.identity.owner_id;
    let runner = harness.agent_with(abroad, &[Role::Runner]).await;
    let id = cast.author.create(note("Lure"), None).await.unwrap().id;
    let tool = NewBreadcrumb { schema_name: Some("tool.code.v1".into()), ..note("Tool") };
    let tool = cast.author.create(tool, None).await.unwrap().id;
    for id in [id, tool] {
        cast.author.grant(&AclChange::tenant(id, abroad, Action::ALL)).await.unwrap();
    }
    let mut of_runner = runner.events(Some(EventNumber(0))).await.unwrap();
    let mut of_stranger = cast.stranger.events(Some(EventNumber(0))).await.unwrap();
    for id in [id, tool] {
        cast.author.update(id, 1, BreadcrumbChanges::default()).await.unwrap();
    }
    let own = cast.stranger.create(note("Own"), None).await.unwrap().id;
    assert_eq!(heard_until(&mut of_runner, own).await, [own]);
    assert_eq!(heard_until(&mut of_stranger, own).await, [id, own]);
    assert_eq!(runner.list(&BreadcrumbQuery::tagged("note")).await.unwrap().len(), 1);
}

pub async fn events_of_a_secret_record_have_no_context(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let mut live = cast.curator.events(Some(EventNumber(0))).await.unwrap();
    let secret = NewBreadcrumb { sensitivity: Sensitivity::Secret, ..note("Secret") };
    let id = cast.author.create(secret, None).await.unwrap().id;
    cast.author.update(id, 1, BreadcrumbChanges::default()).await.unwrap();
    let hidden_later = cast.author.create(note("Plain"), None).await.unwrap().id;
    let hiding = BreadcrumbChanges { sensitivity: Some(Sensitivity::Secret), ..BreadcrumbChanges::default() };
    cast.author.update(hidden_later, 1, hiding).await.unwrap();
    cast.author.delete(id, None).await.unwrap();
    let end = cast.author.create(note("End"), None).await.unwrap().id;
    for is_live in [true, false] {
        if !is_live {
            // After the first subscriber has all events: events that still wait for an older
            // transaction are sent as they were written.
            live = cast.curator.events(Some(EventNumber(0))).await.unwrap();
        }
        for (n, (expected, is_secret)) in
            [(id, true), (id, true), (hidden_later, false), (hidden_later, true), (id, true), (end, false)]
                .into_iter()
                .enumerate()
        {
            let event = next(&mut live).await;
            assert_eq!(event.breadcrumb_id, expected, "{n}");
            // For a later reader, a record that became secret is secret in all its events.
            if n == 2 && (!is_live || event.redacted) {
                assert!(event.redacted && event.context.is_empty());
                continue;
            }
            assert_eq!((event.redacted, event.context.is_empty()), (is_secret, is_secret), "{n}");
        }
    }
}

pub async fn a_guest_cannot_write_records_that_the_runtime_acts_on(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let stranger = id_of(&cast.stranger);
    let plain = cast.author.create(note("Plain"), None).await.unwrap().id;
    let tool = NewBreadcrumb { schema_name: Some("tool.code.v1".into()), ..note("Tool") };
    let tool = cast.author.create(tool, None).await.unwrap().id;
    for id in [plain, tool] {
        cast.author.grant(&AclChange::agent(id, stranger, [Action::ReadFull, Action::Update])).await.unwrap();
    }
    let renamed = BreadcrumbChanges { schema_name: Some("tool.code.v1".into()), ..BreadcrumbChanges::default() };
    assert_forbidden(cast.stranger.update(plain, 1, renamed).await);
    let code = BreadcrumbChanges { context: Some(object(json!({"code": {}}))), ..BreadcrumbChanges::default() };
    assert_forbidden(cast.stranger.update(tool, 1, code).await);
    // A grant to update does not allow setting an expiry.
    let ending = BreadcrumbChanges { ttl: Some(chrono::Utc::now()), ..BreadcrumbChanges::default() };
    assert_forbidden(cast.stranger.update(plain, 1, ending.clone()).await);
    let opening = BreadcrumbChanges { visibility: Some(Visibility::Public), ..BreadcrumbChanges::default() };
    assert_forbidden(cast.stranger.update(plain, 1, opening).await);
    let kept = cast.author.create(private("Kept"), None).await.unwrap().id;
    cast.author.grant(&AclChange::agent(kept, id_of(&cast.colleague), [Action::Update])).await.unwrap();
    assert_forbidden(cast.colleague.update(kept, 1, ending.clone()).await);
    cast.author.grant(&AclChange::agent(plain, stranger, [Action::Delete])).await.unwrap();
    cast.stranger.update(plain, 1, ending).await.unwrap();
    assert_not_found(cast.author.get(plain).await);
}

pub async fn records_of_a_private_request_belong_to_its_author(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let request = || NewBreadcrumb { visibility: Visibility::Private, ..crate::harness::request() };
    // Completed by a runner on behalf of the calling agent.
    let asked = cast.author.create(request(), None).await.unwrap().id;
    let claim = cast.runner.claim(&crate::harness::claim_of(1)).await.unwrap().remove(0);
    cast.runner.start(claim.lease, 1).await.unwrap();
    let answer = NewBreadcrumb {
        visibility: Visibility::Private,
        ..crate::harness::answer_to(&claim, json!({"word": "quiet"}))
    };
    let for_author = cast.runner.acting_for(id_of(&cast.author)).unwrap();
    let response = for_author.complete(claim.lease, answer).await.unwrap();
    assert_eq!(cast.author.call(asked).await.unwrap().response, Some(response));
    assert_eq!(cast.author.get(response).await.unwrap().visibility, Visibility::Private);
    assert_not_found(cast.colleague.get(response).await);
    // Completed by the store.
    let asked = cast.author.create(request(), None).await.unwrap().id;
    let response = cast.author.cancel(asked).await.unwrap().response.unwrap();
    assert_eq!(cast.author.get(response).await.unwrap().visibility, Visibility::Private);
    assert_not_found(cast.colleague.get(response).await);
}

/// The versions that an agent reads of a record, oldest first.
async fn versions_for(agent: &Agent, id: Uuid) -> Vec<i64> {
    let mut versions: Vec<i64> = agent.history(id).await.unwrap().iter().map(|one| one.version).collect();
    versions.reverse();
    versions
}

pub async fn an_old_version_is_visible_by_its_own_visibility(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let id = cast.author.create(private("Diary"), None).await.unwrap().id;
    let opened = BreadcrumbChanges {
        visibility: Some(Visibility::Team),
        context: Some(object(json!({"text": "for all"}))),
        ..BreadcrumbChanges::default()
    };
    cast.author.update(id, 1, opened).await.unwrap();
    let renamed = BreadcrumbChanges { title: Some("Open diary".into()), ..BreadcrumbChanges::default() };
    cast.author.update(id, 2, renamed).await.unwrap();
    for agent in [&cast.author, &cast.curator, &cast.runner] {
        assert_eq!(versions_for(agent, id).await, [1, 2, 3]);
    }
    assert_eq!(versions_for(&cast.colleague, id).await, [2, 3]);
    // A grant to read the full record also opens its past, until it is revoked.
    let grant = AclChange::agent(id, id_of(&cast.colleague), [Action::ReadFull]);
    cast.author.grant(&grant).await.unwrap();
    assert_eq!(versions_for(&cast.colleague, id).await, [1, 2, 3]);
    cast.author.revoke(&grant).await.unwrap();
    assert_eq!(versions_for(&cast.colleague, id).await, [2, 3]);
    // A runner that acts on behalf of an agent reads no more than that agent.
    let for_colleague = cast.runner.acting_for(id_of(&cast.colleague)).unwrap();
    let read = for_colleague.history(id).await.unwrap();
    assert_eq!(read.iter().map(|one| one.version).collect::<Vec<_>>(), [3, 2]);
    // The event stream has the same versions for the agent.
    let expected = [(1, true), (2, false), (3, false)];
    for agent in [&cast.author, &cast.curator, &cast.runner] {
        let heard = received_versions(agent, id, 3).await;
        assert_eq!(heard.iter().map(|event| (event.version, event.private)).collect::<Vec<_>>(), expected);
        assert_eq!(heard[0].context["text"], "Diary walrus");
    }
    let heard = received_versions(&cast.colleague, id, 3).await;
    assert_eq!(heard.iter().map(|event| (event.version, event.private)).collect::<Vec<_>>(), expected[1..]);
    assert!(heard.iter().all(|event| event.context["text"] == "for all"), "{heard:?}");
    let subscribe = AclChange::agent(id, id_of(&cast.colleague), [Action::Subscribe]);
    cast.author.grant(&subscribe).await.unwrap();
    assert_eq!(received_versions(&cast.colleague, id, 3).await.len(), 3);
    cast.author.revoke(&subscribe).await.unwrap();
    // Deleting the record does not open anything either.
    cast.author.delete(id, None).await.unwrap();
    let end = cast.author.create(note("The end"), None).await.unwrap().id;
    let mut events = cast.colleague.events(Some(EventNumber(0))).await.unwrap();
    let mut versions = Vec::new();
    loop {
        let event = next(&mut events).await;
        if event.breadcrumb_id == end {
            break;
        }
        versions.push(event.version);
    }
    assert_eq!(versions, [2, 3, 3]);
}

/// The record's events that the agent gets, from the first one up to this version's.
async fn received_versions(agent: &Agent, id: Uuid, last: i64) -> Vec<Event> {
    let mut events = agent.events(Some(EventNumber(0))).await.unwrap();
    let mut received: Vec<Event> = Vec::new();
    while received.last().is_none_or(|event| event.version != last) {
        let event = next(&mut events).await;
        assert_eq!(event.breadcrumb_id, id);
        received.push(event);
    }
    received
}

pub async fn an_old_version_is_visible_by_its_own_sensitivity(harness: &impl Harness) {
    let cast = Cast::of(harness).await;
    let secret =
        NewBreadcrumb { sensitivity: Sensitivity::Secret, ..noted("Code", json!({"text": "4711"}), &["kept"]) };
    let id = cast.author.create(secret, None).await.unwrap().id;
    let declared = BreadcrumbChanges {
        sensitivity: Some(Sensitivity::Low),
        context: Some(object(json!({"text": "none"}))),
        ..BreadcrumbChanges::default()
    };
    cast.author.update(id, 1, declared).await.unwrap();
    assert_eq!(versions_for(&cast.author, id).await, [1, 2]);
    assert_eq!(versions_for(&cast.curator, id).await, [1, 2]);
    assert_eq!(versions_for(&cast.colleague, id).await, [2]);
    for agent in [&cast.author, &cast.curator, &cast.colleague] {
        let heard = received_versions(agent, id, 2).await;
        assert_eq!(heard.iter().map(|event| event.redacted).collect::<Vec<_>>(), [true, false]);
        assert!(heard[0].context.is_empty() && heard[1].context["text"] == "none", "{heard:?}");
    }
}
