//! Grants: what each opens to whom, and who can give them.

use rcrt_breadcrumb::{AclChange, Action, BreadcrumbChanges, BreadcrumbQuery, NewBreadcrumb, Selector, Visibility};
use serde_json::json;
use uuid::Uuid;

use super::{Participants, id_of, private, tried};
use crate::harness::{Harness, alone, assert_forbidden, assert_not_found, fields, note, noted, object};

pub async fn each_action_grants_only_its_right(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let (colleague, stranger) = (id_of(&agents.colleague), id_of(&agents.stranger));
    let other_tenant = agents.stranger.identity.owner_id;
    let whose = |to: usize, id: Uuid, actions: Vec<Action>| match to {
        0 => AclChange::agent(id, colleague, actions),
        1 => AclChange::agent(id, stranger, actions),
        _ => AclChange::tenant(id, other_tenant, actions),
    };
    for to in 0..3 {
        let grantee = if to == 0 { &agents.colleague } else { &agents.stranger };
        for (action, expected) in [
            (Action::ReadContext, vec!["view", "list"]),
            (Action::ReadFull, vec!["view", "full", "list"]),
            (Action::Update, vec!["update"]),
            (Action::Delete, vec![]),
            (Action::Subscribe, vec![]),
        ] {
            let id = agents.author.create(private("Shared"), None).await.unwrap().id;
            let change = whose(to, id, vec![action]);
            agents.author.grant(&change).await.unwrap();
            let (may, version) = tried(grantee, id, 1).await;
            assert_eq!(may, expected, "{action:?} {to}");
            // No other agent got access.
            let others = if to == 0 { &agents.stranger } else { &agents.colleague };
            assert_eq!(tried(others, id, version).await.0, Vec::<&str>::new(), "{action:?} {to}");
            // A revocation takes effect at once.
            assert_eq!(agents.author.revoke(&change).await.unwrap(), 1);
            assert_eq!(tried(grantee, id, version).await.0, Vec::<&str>::new(), "{action:?} {to} revoked");
            assert_not_found(grantee.delete(id, None).await);
            assert_eq!(agents.author.revoke(&change).await.unwrap(), 0);
            agents.author.grant(&whose(to, id, vec![action])).await.unwrap();
            let deleted = grantee.delete(id, Some(version)).await;
            if action == Action::Delete {
                deleted.unwrap();
                assert_not_found(agents.author.get(id).await);
            } else {
                assert_not_found(deleted);
            }
        }
    }
    // A grant to another agent or another tenant does not count for this one.
    let id = agents.author.create(private("Elsewhere"), None).await.unwrap().id;
    let other = alone(harness).await;
    agents.author.grant(&AclChange::agent(id, id_of(&other), Action::ALL)).await.unwrap();
    agents.author.grant(&AclChange::tenant(id, agents.author.identity.owner_id, [Action::ReadContext])).await.unwrap();
    assert_eq!(tried(&agents.stranger, id, 1).await.0, Vec::<&str>::new());
    assert_eq!(tried(&agents.colleague, id, 1).await.0, ["view", "list"]);
}

pub async fn a_shared_record_names_its_tenant(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let stranger = id_of(&agents.stranger);
    let shared = agents.author.create(noted("Shared", json!({"n": 1}), &["kept"]), None).await.unwrap().id;
    let tool = NewBreadcrumb { schema_name: Some("tool.code.v1".into()), ..noted("Tool", json!({}), &["kept"]) };
    let tool = agents.author.create(tool, None).await.unwrap().id;
    for id in [shared, tool] {
        agents.author.grant(&AclChange::agent(id, stranger, [Action::ReadContext])).await.unwrap();
    }
    let own = agents.stranger.create(noted("Own", json!({}), &["kept"]), None).await.unwrap().id;
    let found = agents.stranger.list(&BreadcrumbQuery::tagged("kept")).await.unwrap();
    let found: Vec<_> = found.iter().map(|item| (item.id, item.owner_id)).collect();
    // Records that the runtime acts on are not included: no tenant can give tools to another.
    assert_eq!(found, [(own, None), (shared, Some(agents.author.identity.owner_id))]);
    assert_eq!(agents.stranger.view(tool).await.unwrap().id, tool);
    let narrowed = Selector { any_tags: vec!["kept".into()], ..Selector::default() };
    let page = BreadcrumbQuery { selector: narrowed, limit: 1, offset: 1, ..BreadcrumbQuery::default() };
    assert_eq!(agents.stranger.list(&page).await.unwrap()[0].id, shared);
}

pub async fn grants_are_listed_for_those_concerned(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let (one, two) = (
        agents.author.create(private("One"), None).await.unwrap().id,
        agents.curator.create(private("Two"), None).await.unwrap().id,
    );
    let to = id_of(&agents.stranger);
    let first = agents.author.grant(&AclChange::agent(one, to, [Action::Update])).await.unwrap();
    let again = agents.curator.grant(&AclChange::agent(one, to, [Action::ReadFull, Action::Update])).await.unwrap();
    assert_eq!(first, again, "one grantee has one grant");
    let tenant = agents.stranger.identity.owner_id;
    agents.curator.grant(&AclChange::tenant(two, tenant, [Action::Subscribe])).await.unwrap();
    let of_curator = agents.curator.grants(None).await.unwrap();
    assert_eq!(of_curator.iter().map(|entry| entry.breadcrumb_id).collect::<Vec<_>>(), [two, one]);
    assert_eq!((of_curator[0].grantee_agent_id, of_curator[0].grantee_owner_id), (None, Some(tenant)));
    assert_eq!((of_curator[1].grantee_agent_id, of_curator[1].grantee_owner_id), (Some(to), None));
    assert_eq!(of_curator[1].actions, [Action::ReadFull, Action::Update]);
    assert_eq!(agents.author.grants(None).await.unwrap(), of_curator[1..]);
    assert_eq!(agents.author.grants(Some(two)).await.unwrap(), []);
    assert_eq!(agents.curator.grants(Some(two)).await.unwrap(), of_curator[..1]);
    assert_eq!(agents.colleague.grants(None).await.unwrap(), []);
    assert_eq!(agents.stranger.grants(None).await.unwrap(), []);
    assert_eq!(agents.author.revoke(&AclChange::agent(one, to, [Action::Update])).await.unwrap(), 1);
    assert_eq!(agents.author.grants(None).await.unwrap()[0].actions, [Action::ReadFull]);
    agents.author.delete(one, None).await.unwrap();
    assert_eq!(agents.author.grants(None).await.unwrap(), []);
}

pub async fn an_invalid_grant_is_refused(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let id = agents.author.create(private("Kept"), None).await.unwrap().id;
    let to = id_of(&agents.stranger);
    let unknown = Uuid::new_v4();
    let good = AclChange::agent(id, to, [Action::Update]);
    let both = AclChange { grantee_owner_id: Some(agents.stranger.identity.owner_id), ..good.clone() };
    assert_eq!(fields(agents.author.grant(&both).await), ["grantee_owner_id"]);
    let none = AclChange { grantee_agent_id: None, ..good.clone() };
    assert_eq!(fields(agents.author.grant(&none).await), ["grantee_agent_id"]);
    assert_eq!(fields(agents.author.revoke(&none).await), ["grantee_agent_id"]);
    assert_eq!(fields(agents.author.grant(&AclChange::agent(id, to, [])).await), ["actions"]);
    let twice = AclChange { action: Some(Action::Update), ..good.clone() };
    assert_eq!(fields(agents.author.grant(&twice).await), ["action"]);
    assert_eq!(
        fields(agents.author.grant(&AclChange::agent(id, unknown, [Action::Update])).await),
        ["grantee_agent_id"]
    );
    assert_eq!(
        fields(agents.author.grant(&AclChange::tenant(id, unknown, [Action::Update])).await),
        ["grantee_owner_id"]
    );
    for missing in [unknown, agents.stranger.create(private("Theirs"), None).await.unwrap().id] {
        assert_not_found(agents.curator.grant(&AclChange::agent(missing, to, [Action::Update])).await);
        assert_not_found(agents.curator.revoke(&AclChange::agent(missing, to, [Action::Update])).await);
    }
    assert_not_found(agents.colleague.grant(&good).await);
    // Holding every right does not allow an agent to grant rights.
    agents.author.grant(&AclChange::agent(id, to, Action::ALL)).await.unwrap();
    assert_not_found(agents.stranger.grant(&good).await);
}

pub async fn a_guest_cannot_write_records_that_the_runtime_acts_on(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let stranger = id_of(&agents.stranger);
    let plain = agents.author.create(note("Plain"), None).await.unwrap().id;
    let tool = NewBreadcrumb { schema_name: Some("tool.code.v1".into()), ..note("Tool") };
    let tool = agents.author.create(tool, None).await.unwrap().id;
    for id in [plain, tool] {
        agents.author.grant(&AclChange::agent(id, stranger, [Action::ReadFull, Action::Update])).await.unwrap();
    }
    let renamed = BreadcrumbChanges { schema_name: Some("tool.code.v1".into()), ..BreadcrumbChanges::default() };
    assert_forbidden(agents.stranger.update(plain, 1, renamed).await);
    let code = BreadcrumbChanges { context: Some(object(json!({"code": {}}))), ..BreadcrumbChanges::default() };
    assert_forbidden(agents.stranger.update(tool, 1, code).await);
    // A grant to update does not allow setting an expiry.
    let ending = BreadcrumbChanges { ttl: Some(chrono::Utc::now()), ..BreadcrumbChanges::default() };
    assert_forbidden(agents.stranger.update(plain, 1, ending.clone()).await);
    let opening = BreadcrumbChanges { visibility: Some(Visibility::Public), ..BreadcrumbChanges::default() };
    assert_forbidden(agents.stranger.update(plain, 1, opening).await);
    let kept = agents.author.create(private("Kept"), None).await.unwrap().id;
    agents.author.grant(&AclChange::agent(kept, id_of(&agents.colleague), [Action::Update])).await.unwrap();
    assert_forbidden(agents.colleague.update(kept, 1, ending.clone()).await);
    agents.author.grant(&AclChange::agent(plain, stranger, [Action::Delete])).await.unwrap();
    agents.stranger.update(plain, 1, ending).await.unwrap();
    assert_not_found(agents.author.get(plain).await);
}
