//! Who receives the events of a record, and what they contain.

use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, BreadcrumbQuery, EventNumber, EventStream, NewBreadcrumb, Role, Sensitivity,
    Visibility,
};
use uuid::Uuid;

use super::{Participants, id_of, private};
use crate::harness::{Agent, Harness, next, note};

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
    let agents = Participants::of(harness).await;
    let mut live = Vec::new();
    for agent in [&agents.author, &agents.colleague, &agents.curator, &agents.runner] {
        live.push(agent.events(Some(EventNumber(0))).await.unwrap());
    }
    let hidden = agents.author.create(private("Hidden"), None).await.unwrap().id;
    agents.author.update(hidden, 1, BreadcrumbChanges::default()).await.unwrap();
    let was_open = agents.author.create(note("Closed soon"), None).await.unwrap().id;
    let closing = BreadcrumbChanges { visibility: Some(Visibility::Private), ..BreadcrumbChanges::default() };
    agents.author.update(was_open, 1, closing).await.unwrap();
    agents.author.delete(hidden, None).await.unwrap();
    let open = agents.author.create(note("Open"), None).await.unwrap().id;
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
    let mut resumed = agents.colleague.events(Some(EventNumber(0))).await.unwrap();
    assert_eq!(heard_until(&mut resumed, open).await, [open]);
    let mut resumed = agents.author.events(Some(EventNumber(0))).await.unwrap();
    assert_eq!(heard_until(&mut resumed, open).await, all);
}

pub async fn a_grant_to_subscribe_opens_the_events_until_it_is_revoked(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let stranger = id_of(&agents.stranger);
    let whole_tenant = harness.agent_with(agents.stranger.identity.owner_id, &[Role::Subscriber]).await;
    for (grantee, change) in [
        (&agents.colleague, (false, id_of(&agents.colleague))),
        (&agents.stranger, (false, stranger)),
        (&whole_tenant, (true, agents.stranger.identity.owner_id)),
    ] {
        let of = |id| match change {
            (false, agent) => AclChange::agent(id, agent, [Action::Subscribe]),
            (true, tenant) => AclChange::tenant(id, tenant, [Action::Subscribe]),
        };
        let before = agents.author.create(private("Followed"), None).await.unwrap().id;
        let other = agents.author.create(private("Other"), None).await.unwrap().id;
        agents.author.grant(&of(before)).await.unwrap();
        let start = grantee.latest_event().await.unwrap();
        let mut live = grantee.events(Some(start)).await.unwrap();
        let own = async |title: &str| grantee_note(harness, grantee, title).await;
        let first = own("first").await;
        agents.author.update(before, 1, BreadcrumbChanges::default()).await.unwrap();
        agents.author.update(other, 1, BreadcrumbChanges::default()).await.unwrap();
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
                assert_eq!((event.owner_id, event.version), (agents.author.identity.owner_id, 2));
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

        agents.author.revoke(&of(before)).await.unwrap();
        agents.author.update(before, 2, BreadcrumbChanges::default()).await.unwrap();
        let third = own("third").await;
        assert_eq!(heard_until(&mut live, third).await, [third]);
        let mut resumed = grantee.events(Some(numbers[0])).await.unwrap();
        assert_eq!(heard_until(&mut resumed, third).await, [second, third]);
        // After a new grant, all events are received up to the deletion.
        agents.author.grant(&of(before)).await.unwrap();
        agents.author.delete(before, None).await.unwrap();
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
    let agents = Participants::of(harness).await;
    let other_tenant = agents.stranger.identity.owner_id;
    let runner = harness.agent_with(other_tenant, &[Role::Runner]).await;
    let id = agents.author.create(note("Lure"), None).await.unwrap().id;
    let tool = NewBreadcrumb { schema_name: Some("tool.code.v1".into()), ..note("Tool") };
    let tool = agents.author.create(tool, None).await.unwrap().id;
    for id in [id, tool] {
        agents.author.grant(&AclChange::tenant(id, other_tenant, Action::ALL)).await.unwrap();
    }
    let mut of_runner = runner.events(Some(EventNumber(0))).await.unwrap();
    let mut of_stranger = agents.stranger.events(Some(EventNumber(0))).await.unwrap();
    for id in [id, tool] {
        agents.author.update(id, 1, BreadcrumbChanges::default()).await.unwrap();
    }
    let own = agents.stranger.create(note("Own"), None).await.unwrap().id;
    assert_eq!(heard_until(&mut of_runner, own).await, [own]);
    assert_eq!(heard_until(&mut of_stranger, own).await, [id, own]);
    assert_eq!(runner.list(&BreadcrumbQuery::tagged("note")).await.unwrap().len(), 1);
}

pub async fn events_of_a_secret_record_have_no_context(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let mut live = agents.curator.events(Some(EventNumber(0))).await.unwrap();
    let secret = NewBreadcrumb { sensitivity: Sensitivity::Secret, ..note("Secret") };
    let id = agents.author.create(secret, None).await.unwrap().id;
    agents.author.update(id, 1, BreadcrumbChanges::default()).await.unwrap();
    let hidden_later = agents.author.create(note("Plain"), None).await.unwrap().id;
    let hiding = BreadcrumbChanges { sensitivity: Some(Sensitivity::Secret), ..BreadcrumbChanges::default() };
    agents.author.update(hidden_later, 1, hiding).await.unwrap();
    agents.author.delete(id, None).await.unwrap();
    let end = agents.author.create(note("End"), None).await.unwrap().id;
    for is_live in [true, false] {
        if !is_live {
            // After the first subscriber has all events: events that still wait for an older
            // transaction are sent as they were written.
            live = agents.curator.events(Some(EventNumber(0))).await.unwrap();
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
