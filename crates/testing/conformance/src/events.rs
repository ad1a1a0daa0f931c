//! Event streams.

use std::collections::HashMap;

use futures::{FutureExt, StreamExt};
use rcrt_breadcrumb::{BreadcrumbChanges, EventKind, EventNumber};
use serde_json::json;

use crate::harness::{Harness, alone, fields, next, note, noted, object, request};

pub async fn each_change_is_one_event_with_its_content(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut events = agent.events(None).await.unwrap();
    let id = agent.create(noted("One", json!({"z": 1, "a": 2}), &["x"]), None).await.unwrap().id;
    let context = Some(object(json!({"n": 2})));
    let updated = agent.update(id, 1, BreadcrumbChanges { context, ..BreadcrumbChanges::default() }).await.unwrap();
    agent.delete(id, None).await.unwrap();

    let created = next(&mut events).await;
    assert_eq!((created.kind, created.breadcrumb_id, created.version), (EventKind::Created, id, 1));
    assert_eq!(serde_json::to_string(&created.context).unwrap(), r#"{"z":1,"a":2}"#);
    assert_eq!((created.tags.clone(), created.schema_name.as_deref()), (vec!["x".to_owned()], Some("note.v1")));
    assert_eq!(created.owner_id, agent.identity.owner_id);

    let changed = next(&mut events).await;
    assert_eq!((changed.kind, changed.version, changed.updated_at), (EventKind::Updated, 2, updated.updated_at));
    assert_eq!(changed.context, object(json!({"n": 2})));

    let deleted = next(&mut events).await;
    assert_eq!(
        (deleted.kind, deleted.version, deleted.context.clone()),
        (EventKind::Deleted, 2, object(json!({"n": 2})).into())
    );
    assert!(created.number < changed.number && changed.number < deleted.number);
    assert!(events.next().now_or_never().is_none(), "one change is one event");
}

pub async fn a_subscriber_without_a_number_starts_with_the_next(harness: &impl Harness) {
    let agent = alone(harness).await;
    agent.create(note("Before"), None).await.unwrap();
    let mut events = agent.events(None).await.unwrap();
    let id = agent.create(note("After"), None).await.unwrap().id;
    assert_eq!(next(&mut events).await.breadcrumb_id, id);
}

pub async fn a_subscriber_resumes_after_its_number(harness: &impl Harness) {
    let agent = alone(harness).await;
    assert_eq!(agent.latest_event().await.unwrap(), EventNumber(0));
    let mut live = agent.events(Some(EventNumber(0))).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..30 {
        ids.push(agent.create(note(&format!("{n}")), None).await.unwrap().id);
    }
    let mut numbers = Vec::new();
    for id in &ids {
        let event = next(&mut live).await;
        assert_eq!(event.breadcrumb_id, *id);
        numbers.push(event.number);
    }
    assert!(numbers.is_sorted());
    assert_eq!(agent.latest_event().await.unwrap(), numbers[29]);
    let mut resumed = agent.events(Some(numbers[9])).await.unwrap();
    for id in &ids[10..] {
        assert_eq!(next(&mut resumed).await.breadcrumb_id, *id);
    }
    ids.push(agent.create(note("new"), None).await.unwrap().id);
    assert_eq!(next(&mut resumed).await.breadcrumb_id, ids[30]);
    assert_eq!(next(&mut live).await.breadcrumb_id, ids[30]);
}

pub async fn an_unknown_event_number_is_refused(harness: &impl Harness) {
    let agent = alone(harness).await;
    let other = harness.agent(agent.identity.owner_id).await;
    let mut live = agent.events(None).await.unwrap();
    for n in 0..20 {
        agent.create(note(&format!("{n}")), None).await.unwrap();
        let number = next(&mut live).await.number;
        // A newly assigned number is known on every connection.
        drop(other.events(Some(number)).await.unwrap());
        for beyond in [number.0 + (1 << 40), i64::MAX] {
            assert_eq!(fields(agent.events(Some(EventNumber(beyond))).await.map(|_| ())), ["last_event_id"]);
        }
    }
}

pub async fn many_writers_reach_every_subscriber_once_and_in_order(harness: &impl Harness) {
    const WRITERS: usize = 8;
    const CHANGES: i64 = 12;
    let agent = alone(harness).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(agent.events(Some(EventNumber(0))).await.unwrap());
    }
    let writers = (0..WRITERS).map(|_| {
        let agent = agent.clone();
        tokio::spawn(async move {
            let id = agent.create(note("Busy"), None).await.unwrap().id;
            for version in 1..CHANGES {
                agent.update(id, version, BreadcrumbChanges::default()).await.unwrap();
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.unwrap();
    }
    for events in &mut streams {
        let mut versions: HashMap<_, i64> = HashMap::new();
        let mut last = EventNumber(0);
        for _ in 0..WRITERS as i64 * CHANGES {
            let event = next(events).await;
            assert!(event.number > last, "numbers grow");
            last = event.number;
            let version = versions.entry(event.breadcrumb_id).or_default();
            *version += 1;
            assert_eq!(event.version, *version, "a record's changes come in their order");
        }
        assert_eq!(versions.len(), WRITERS);
    }
}

pub async fn a_slow_subscriber_misses_nothing(harness: &impl Harness) {
    const RECORDS: usize = 700;
    let agent = alone(harness).await;
    let mut slow = agent.events(Some(EventNumber(0))).await.unwrap();
    // The stream is live before the subscriber stalls.
    agent.create(note("first"), None).await.unwrap();
    let first = next(&mut slow).await;
    let writers = (0..10).map(|_| {
        let agent = agent.clone();
        tokio::spawn(async move {
            for _ in 0..RECORDS / 10 {
                agent.create(note("flood"), None).await.unwrap();
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.unwrap();
    }
    let mut last = first.number;
    for _ in 0..RECORDS {
        let event = next(&mut slow).await;
        assert!(event.number > last);
        last = event.number;
    }
    agent.create(note("last"), None).await.unwrap();
    assert!(next(&mut slow).await.number > last);
}

pub async fn a_large_event_comes_through(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut events = agent.events(None).await.unwrap();
    for size in [3_000_000, 1, 3_000_000] {
        agent.create(noted("Large", json!({"text": "x".repeat(size)}), &[]), None).await.unwrap();
    }
    for size in [3_000_000, 1, 3_000_000] {
        assert_eq!(next(&mut events).await.context["text"].as_str().unwrap().len(), size);
    }
}

pub async fn another_tenants_events_are_not_delivered(harness: &impl Harness) {
    let (agent, stranger) = (alone(harness).await, alone(harness).await);
    let mut events = stranger.events(Some(EventNumber(0))).await.unwrap();
    agent.create(request(), None).await.unwrap();
    let own = stranger.create(note("Own"), None).await.unwrap().id;
    assert_eq!(next(&mut events).await.breadcrumb_id, own);
    assert!(events.next().now_or_never().is_none());
}
