//! Who reads the versions that a record had before.

use std::sync::Arc;

use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, Event, EventNumber, NewBreadcrumb, Sensitivity, Visibility,
};
use serde_json::json;
use uuid::Uuid;

use super::{Participants, id_of, private};
use crate::harness::{Agent, Harness, next, note, noted, object};

/// The versions that an agent reads of a record, oldest first.
async fn versions_for(agent: &Agent, id: Uuid) -> Vec<i64> {
    let mut versions: Vec<i64> = agent.history(id).await.unwrap().iter().map(|one| one.version).collect();
    versions.reverse();
    versions
}

pub async fn an_old_version_is_visible_by_its_own_visibility(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let id = agents.author.create(private("Diary"), None).await.unwrap().id;
    let opened = BreadcrumbChanges {
        visibility: Some(Visibility::Team),
        context: Some(object(json!({"text": "for all"}))),
        ..BreadcrumbChanges::default()
    };
    agents.author.update(id, 1, opened).await.unwrap();
    let renamed = BreadcrumbChanges { title: Some("Open diary".into()), ..BreadcrumbChanges::default() };
    agents.author.update(id, 2, renamed).await.unwrap();
    for agent in [&agents.author, &agents.curator, &agents.runner] {
        assert_eq!(versions_for(agent, id).await, [1, 2, 3]);
    }
    assert_eq!(versions_for(&agents.colleague, id).await, [2, 3]);
    // A grant to read the full record also opens its past, until it is revoked.
    let grant = AclChange::agent(id, id_of(&agents.colleague), [Action::ReadFull]);
    agents.author.grant(&grant).await.unwrap();
    assert_eq!(versions_for(&agents.colleague, id).await, [1, 2, 3]);
    agents.author.revoke(&grant).await.unwrap();
    assert_eq!(versions_for(&agents.colleague, id).await, [2, 3]);
    // A runner that acts on behalf of an agent reads no more than that agent.
    let for_colleague = agents.runner.on_behalf_of(id_of(&agents.colleague)).unwrap();
    let read = for_colleague.history(id).await.unwrap();
    assert_eq!(read.iter().map(|one| one.version).collect::<Vec<_>>(), [3, 2]);
    // The event stream has the same versions for the agent.
    let expected = [(1, true), (2, false), (3, false)];
    for agent in [&agents.author, &agents.curator, &agents.runner] {
        let heard = received_versions(agent, id, 3).await;
        assert_eq!(heard.iter().map(|event| (event.version, event.private)).collect::<Vec<_>>(), expected);
        assert_eq!(heard[0].context["text"], "Diary walrus");
    }
    let heard = received_versions(&agents.colleague, id, 3).await;
    assert_eq!(heard.iter().map(|event| (event.version, event.private)).collect::<Vec<_>>(), expected[1..]);
    assert!(heard.iter().all(|event| event.context["text"] == "for all"), "{heard:?}");
    let subscribe = AclChange::agent(id, id_of(&agents.colleague), [Action::Subscribe]);
    agents.author.grant(&subscribe).await.unwrap();
    assert_eq!(received_versions(&agents.colleague, id, 3).await.len(), 3);
    agents.author.revoke(&subscribe).await.unwrap();
    // Deleting the record does not open anything either.
    agents.author.delete(id, None).await.unwrap();
    let end = agents.author.create(note("The end"), None).await.unwrap().id;
    let mut events = agents.colleague.events(Some(EventNumber(0))).await.unwrap();
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
async fn received_versions(agent: &Agent, id: Uuid, last: i64) -> Vec<Arc<Event>> {
    let mut events = agent.events(Some(EventNumber(0))).await.unwrap();
    let mut received: Vec<Arc<Event>> = Vec::new();
    while received.last().is_none_or(|event| event.version != last) {
        let event = next(&mut events).await;
        assert_eq!(event.breadcrumb_id, id);
        received.push(event);
    }
    received
}

pub async fn an_old_version_is_visible_by_its_own_sensitivity(harness: &impl Harness) {
    let agents = Participants::of(harness).await;
    let secret =
        NewBreadcrumb { sensitivity: Sensitivity::Secret, ..noted("Code", json!({"text": "4711"}), &["kept"]) };
    let id = agents.author.create(secret, None).await.unwrap().id;
    let declared = BreadcrumbChanges {
        sensitivity: Some(Sensitivity::Low),
        context: Some(object(json!({"text": "none"}))),
        ..BreadcrumbChanges::default()
    };
    agents.author.update(id, 1, declared).await.unwrap();
    assert_eq!(versions_for(&agents.author, id).await, [1, 2]);
    assert_eq!(versions_for(&agents.curator, id).await, [1, 2]);
    assert_eq!(versions_for(&agents.colleague, id).await, [2]);
    for agent in [&agents.author, &agents.curator, &agents.colleague] {
        let heard = received_versions(agent, id, 2).await;
        assert_eq!(heard.iter().map(|event| event.redacted).collect::<Vec<_>>(), [true, false]);
        assert!(heard[0].context.is_empty() && heard[1].context["text"] == "none", "{heard:?}");
    }
}
