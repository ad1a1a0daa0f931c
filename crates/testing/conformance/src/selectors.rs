//! Selectors: which events an agent's streams contain.

use futures::StreamExt;
use rcrt_breadcrumb::{EventNumber, MAX_SELECTORS, Selector, SubscribeOptions, SubscriptionItem, SubscriptionStream};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Agent, Harness, PATIENCE, alone, assert_not_found, fields, next, noted};

fn selector(parts: Value) -> Selector {
    serde_json::from_value(parts).unwrap()
}

async fn write(agent: &Agent, tag: &str, context: Value) -> Uuid {
    agent.create(noted("Selected or not", context, &[tag]), None).await.unwrap().id
}

async fn by_selectors(agent: &Agent) -> SubscriptionStream {
    agent.subscribe(SubscribeOptions { by_selectors: true, ..SubscribeOptions::default() }).await.unwrap()
}

/// The record of the next event for this subscriber.
async fn heard(followed: &mut SubscriptionStream) -> Uuid {
    loop {
        let item = tokio::time::timeout(PATIENCE, followed.next()).await.expect("an event in time");
        match item.expect("no end").unwrap() {
            SubscriptionItem::Event(event) => return event.breadcrumb_id,
            SubscriptionItem::Skipped(_) => {}
            SubscriptionItem::Missed { first } => panic!("missed what is before {first}"),
        }
    }
}

pub async fn an_agent_stores_selectors(harness: &impl Harness) {
    let agent = alone(harness).await;
    assert_eq!(agent.selectors().await.unwrap(), []);
    let first = agent.create_selector(selector(json!({"any_tags": ["a"]}))).await.unwrap();
    assert_eq!((first.owner_id, first.agent_id), (agent.identity.owner_id, agent.identity.agent_id));
    let whole = json!({"any_tags": ["a"], "all_tags": ["b"], "schema_name": "s.v1",
        "context_match": [{"path": "$.a[0]", "op": "gte", "value": 1.5}, {"path": "$.b", "op": "contains_any", "value": [null]}]});
    let second = agent.create_selector(selector(whole.clone())).await.unwrap();
    assert_eq!(serde_json::to_value(&second.selector).unwrap(), whole);
    assert_eq!(agent.selectors().await.unwrap(), [first.clone(), second.clone()]);

    let changed = agent.update_selector(first.id, selector(json!({"schema_name": "t.v1"}))).await.unwrap();
    assert_eq!((changed.id, changed.created_at), (first.id, first.created_at));
    assert_eq!(changed.selector, selector(json!({"schema_name": "t.v1"})));
    agent.delete_selector(second.id).await.unwrap();
    assert_eq!(agent.selectors().await.unwrap(), [changed]);
    assert_not_found(agent.delete_selector(second.id).await);
    assert_not_found(agent.update_selector(second.id, Selector::default()).await);
}

pub async fn a_selector_belongs_to_its_agent(harness: &impl Harness) {
    let agent = alone(harness).await;
    let colleague = harness.agent(agent.identity.owner_id).await;
    let own = agent.create_selector(selector(json!({"any_tags": ["a"]}))).await.unwrap();
    for other in [colleague.clone(), alone(harness).await] {
        assert_eq!(other.selectors().await.unwrap(), []);
        assert_not_found(other.update_selector(own.id, Selector::default()).await);
        assert_not_found(other.delete_selector(own.id).await);
    }
    let (mut narrow, mut wide) = (by_selectors(&agent).await, by_selectors(&colleague).await);
    let b = write(&agent, "b", json!({})).await;
    let a = write(&agent, "a", json!({})).await;
    assert_eq!(heard(&mut narrow).await, a);
    assert_eq!((heard(&mut wide).await, heard(&mut wide).await), (b, a));
}

pub async fn a_curator_lists_the_selectors_of_another_agent(harness: &impl Harness) {
    let agent = alone(harness).await;
    let colleague = harness.agent(agent.identity.owner_id).await;
    let id = agent.identity.agent_id;
    assert_eq!(colleague.selectors_of(id).await.unwrap(), []);
    let own = agent.create_selector(selector(json!({"any_tags": ["a"]}))).await.unwrap();
    assert_eq!(colleague.selectors_of(id).await.unwrap(), [own]);
    // An agent of another tenant has none here, and a server does not know it.
    assert!(alone(harness).await.selectors_of(id).await.unwrap_or_default().is_empty());
}

pub async fn a_changed_selector_applies_to_open_streams_at_once(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut followed = by_selectors(&agent).await;
    let mut all = agent.events(None).await.unwrap();
    let mut expected = vec![write(&agent, "a", json!({})).await];
    let mut everything = expected.clone();

    let one = agent.create_selector(selector(json!({"any_tags": ["a"]}))).await.unwrap();
    // The stream possibly has not read the first event yet, which matches this selector too.
    everything.push(write(&agent, "b", json!({})).await);
    expected.push(write(&agent, "a", json!({})).await);
    everything.push(expected[1]);
    for id in &expected {
        assert_eq!(heard(&mut followed).await, *id);
    }
    // A second selector.
    let more = selector(json!({"context_match": [{"path": "$.n", "op": "gt", "value": 1}]}));
    let two = agent.create_selector(more).await.unwrap();
    everything.push(write(&agent, "b", json!({"n": 1})).await);
    for (tag, n) in [("b", 2), ("a", 0)] {
        let id = write(&agent, tag, json!({"n": n})).await;
        everything.push(id);
        assert_eq!(heard(&mut followed).await, id);
    }
    // A replaced selector.
    agent.update_selector(one.id, selector(json!({"any_tags": ["c"]}))).await.unwrap();
    everything.push(write(&agent, "a", json!({})).await);
    let id = write(&agent, "c", json!({})).await;
    everything.push(id);
    assert_eq!(heard(&mut followed).await, id);
    // Without selectors: everything.
    agent.delete_selector(one.id).await.unwrap();
    agent.delete_selector(two.id).await.unwrap();
    let id = write(&agent, "x", json!({})).await;
    everything.push(id);
    assert_eq!(heard(&mut followed).await, id);
    // A stream of all events gets all of them, whatever the selectors are.
    for id in everything {
        assert_eq!(next(&mut all).await.breadcrumb_id, id);
    }
}

pub async fn a_filter_narrows_one_stream(harness: &impl Harness) {
    let agent = alone(harness).await;
    agent.create_selector(selector(json!({"any_tags": ["a", "b"]}))).await.unwrap();
    let filters =
        [json!({"schema_name": "note.v1"}), json!({"context_match": [{"path": "$.n", "op": "lte", "value": 1}]})];
    let filters: Vec<Selector> = filters.into_iter().map(selector).collect();
    let ids = [
        write(&agent, "a", json!({"n": 1})).await,
        write(&agent, "a", json!({"n": 2})).await,
        write(&agent, "c", json!({"n": 1})).await,
        write(&agent, "b", json!({"n": 0})).await,
    ];
    let options = SubscribeOptions { after: Some(EventNumber(0)), filters, by_selectors: true };
    let mut both = agent.subscribe(options.clone()).await.unwrap();
    let mut filtered = agent.subscribe(SubscribeOptions { by_selectors: false, ..options }).await.unwrap();
    for id in [ids[0], ids[3]] {
        assert_eq!(heard(&mut both).await, id);
    }
    for id in [ids[0], ids[2], ids[3]] {
        assert_eq!(heard(&mut filtered).await, id);
    }
}

pub async fn an_invalid_selector_is_not_stored(harness: &impl Harness) {
    let agent = alone(harness).await;
    let wrong = selector(json!({"any_tags": [""], "context_match": [{"path": "$.a", "op": "lte", "value": []}]}));
    let named = ["any_tags[0]", "context_match[0].value"];
    assert_eq!(fields(agent.create_selector(wrong.clone()).await), named);
    let kept = agent.create_selector(Selector::default()).await.unwrap();
    assert_eq!(fields(agent.update_selector(kept.id, wrong.clone()).await), named);
    assert_eq!(agent.selectors().await.unwrap(), [kept]);
    let options = SubscribeOptions { filters: vec![wrong], ..SubscribeOptions::default() };
    let refused = fields(agent.subscribe(options).await.map(|_| ()));
    assert!(refused.iter().all(|field| field.starts_with("filters") && named.iter().any(|name| field.ends_with(name))));
    assert_eq!(refused.len(), 2);
}

pub async fn selectors_of_an_agent_are_bounded(harness: &impl Harness) {
    let agent = alone(harness).await;
    let one = || agent.create_selector(selector(json!({"any_tags": ["a"]})));
    for _ in 1..MAX_SELECTORS {
        one().await.unwrap();
    }
    // Of several at the same time, one succeeds.
    let all = futures::future::join_all((0..4).map(|_| one())).await;
    let (made, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
    assert_eq!((made.len(), refused.len()), (1, 3));
    for refused in refused {
        assert_eq!(fields(refused), [""]);
    }
    agent.delete_selector(agent.selectors().await.unwrap()[0].id).await.unwrap();
    one().await.unwrap();
    assert_eq!(agent.selectors().await.unwrap().len(), MAX_SELECTORS);
}
