//! Writing, reading, changing and deleting records.

use chrono::{SubsecRound, TimeDelta, Utc};
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbQuery, MAX_RECORD_BYTES, NewBreadcrumb, Sensitivity, StoreError, TtlType,
    Visibility,
};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Harness, PATIENCE, alone, assert_not_found, fields, note, noted, object, request};

pub async fn a_record_is_read_back_unchanged(harness: &impl Harness) {
    let agent = alone(harness).await;
    let record = NewBreadcrumb {
        title: "Notes".into(),
        description: Some("What was said".into()),
        semantic_version: Some("1.2.3".into()),
        context: object(
            json!({"z": 1, "a": {"deep": [true, null, "ä 😀"]}, "m": 1.5, "big": 9_007_199_254_740_993_i64}),
        ),
        tags: vec!["workspace:one".into(), "note".into()],
        schema_name: Some("note.v1".into()),
        llm_hints: Some(json!({"mode": "merge"})),
        visibility: Visibility::Private,
        sensitivity: Sensitivity::Pii,
        ttl: Some((Utc::now() + TimeDelta::hours(1)).trunc_subsecs(6)),
        ttl_type: Some(TtlType::Datetime),
        ttl_config: Some(json!({"why": "test"})),
    };
    let created = agent.create(record.clone(), None).await.unwrap();
    assert_eq!((created.version, created.replayed), (1, false));
    let read = agent.get(created.id).await.unwrap();
    // The same text means the same order of keys and the same numbers.
    assert_eq!(serde_json::to_string(&read.context).unwrap(), serde_json::to_string(&record.context).unwrap());
    let (checksum, size_bytes) = Breadcrumb::measure(&record.context);
    let agent_id = Some(agent.identity.agent_id);
    let expected = Breadcrumb {
        id: created.id,
        owner_id: agent.identity.owner_id,
        title: record.title,
        description: record.description,
        semantic_version: record.semantic_version,
        context: record.context,
        tags: record.tags,
        schema_name: record.schema_name,
        llm_hints: record.llm_hints,
        visibility: record.visibility,
        sensitivity: record.sensitivity,
        version: 1,
        checksum,
        ttl: record.ttl,
        ttl_type: record.ttl_type,
        ttl_config: record.ttl_config,
        created_at: read.created_at,
        updated_at: read.created_at,
        created_by: agent_id,
        updated_by: agent_id,
        size_bytes,
        read_count: None,
        reads_left: None,
        warnings: Vec::new(),
    };
    assert_eq!(read, expected);
}

pub async fn a_record_can_have_only_a_title(harness: &impl Harness) {
    let agent = alone(harness).await;
    let record = NewBreadcrumb { title: "Bare".into(), ..NewBreadcrumb::default() };
    let read = agent.get(agent.create(record, None).await.unwrap().id).await.unwrap();
    assert_eq!((read.context.len(), read.tags.len(), read.schema_name), (0, 0, None));
}

pub async fn a_change_makes_a_new_version_and_keeps_other_fields(harness: &impl Harness) {
    let agent = alone(harness).await;
    let other = harness.agent(agent.identity.owner_id).await;
    let id = agent.create(noted("First", json!({"n": 1}), &["a", "b"]), None).await.unwrap().id;
    let changes = BreadcrumbChanges {
        title: Some("Second".into()),
        tags: Some(vec!["b".into(), "c".into()]),
        ..BreadcrumbChanges::default()
    };
    let second = other.update(id, 1, changes).await.unwrap();
    assert_eq!((second.version, second.title.as_str()), (2, "Second"));
    assert_eq!(second.context, object(json!({"n": 1})));
    assert_eq!((second.created_by, second.updated_by), (Some(agent.identity.agent_id), Some(other.identity.agent_id)));
    assert!(second.updated_at > second.created_at);
    assert_eq!(agent.get(id).await.unwrap(), second);

    for (tag, count) in [("a", 0), ("b", 1), ("c", 1)] {
        assert_eq!(agent.list(&BreadcrumbQuery::tagged(tag)).await.unwrap().len(), count, "{tag}");
    }
}

pub async fn a_stale_change_is_refused_and_changes_nothing(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create(note("First"), None).await.unwrap().id;
    let titled = |title: &str| BreadcrumbChanges { title: Some(title.into()), ..BreadcrumbChanges::default() };
    let before = agent.update(id, 1, titled("Second")).await.unwrap();
    for stale in [1, 3] {
        let refused = agent.update(id, stale, titled("Never")).await;
        assert_eq!(refused, Err(StoreError::VersionConflict { expected: stale, actual: 2 }));
    }
    assert_eq!(agent.delete(id, Some(1)).await, Err(StoreError::VersionConflict { expected: 1, actual: 2 }));
    assert_eq!(agent.get(id).await.unwrap(), before);
    assert_eq!(agent.history(id).await.unwrap().len(), 2);
}

pub async fn old_versions_stay_readable(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create(noted("One", json!({"n": 1}), &["x"]), None).await.unwrap().id;
    let first = agent.get(id).await.unwrap();
    for (version, title) in [(1, "Two"), (2, "Three")] {
        let context = Some(object(json!({"n": version + 1})));
        let changes = BreadcrumbChanges { title: Some(title.into()), context, ..BreadcrumbChanges::default() };
        agent.update(id, version, changes).await.unwrap();
    }
    let history = agent.history(id).await.unwrap();
    let found: Vec<_> =
        history.iter().map(|entry| (entry.version, entry.title.as_str(), &entry.context["n"])).collect();
    assert_eq!(found, [(3, "Three", &json!(3)), (2, "Two", &json!(2)), (1, "One", &json!(1))]);
    assert_eq!((&history[2].checksum, history[2].updated_at), (&first.checksum, first.updated_at));
    assert_eq!(history[2].tags, ["x"]);
}

pub async fn a_deleted_record_is_gone(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create(note("Gone"), None).await.unwrap().id;
    agent.delete(id, Some(1)).await.unwrap();
    assert_not_found(agent.get(id).await);
    assert_not_found(agent.history(id).await);
    assert_not_found(agent.update(id, 1, BreadcrumbChanges::default()).await);
    assert_not_found(agent.delete(id, None).await);
    assert!(agent.list(&BreadcrumbQuery::tagged("note")).await.unwrap().is_empty());
}

pub async fn an_expired_record_is_gone_at_once(harness: &impl Harness) {
    let agent = alone(harness).await;
    let ending = |at| NewBreadcrumb { ttl: Some(at), ttl_type: Some(TtlType::Datetime), ..note("Short") };
    let past = agent.create(ending(Utc::now() - TimeDelta::seconds(5)), None).await.unwrap().id;
    assert_not_found(agent.get(past).await);
    assert_not_found(agent.history(past).await);
    assert_not_found(agent.update(past, 1, BreadcrumbChanges::default()).await);
    assert!(agent.list(&BreadcrumbQuery::tagged("note")).await.unwrap().is_empty());

    let soon = NewBreadcrumb {
        ttl_type: Some(TtlType::Duration),
        ttl_config: Some(json!({"duration": 3600})),
        ..note("Long")
    };
    let read = agent.get(agent.create(soon, None).await.unwrap().id).await.unwrap();
    let hours = (read.ttl.unwrap() - read.created_at).num_seconds();
    assert!((3590..=3610).contains(&hours), "{hours}");
}

pub async fn an_expired_record_is_deleted_with_an_event(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut events = agent.events(None).await.unwrap();
    let ending = NewBreadcrumb { ttl: Some(Utc::now() + TimeDelta::milliseconds(200)), ..note("Short") };
    let id = agent.create(ending, None).await.unwrap().id;
    let kinds = [crate::harness::next(&mut events).await, crate::harness::next(&mut events).await];
    assert_eq!(
        kinds.map(|event| (event.breadcrumb_id, event.kind.as_str())),
        [(id, "breadcrumb.created"), (id, "breadcrumb.deleted")]
    );
    assert_not_found(agent.get(id).await);
}

pub async fn invalid_fields_are_refused_by_name(harness: &impl Harness) {
    let agent = alone(harness).await;
    let bad = [
        ("title", NewBreadcrumb { title: " ".into(), ..note("x") }),
        ("title", note("a\0b")),
        ("tags[1]", noted("x", json!({}), &["fine", "nu\0l"])),
        ("context.a.b[0]", noted("x", json!({"a": {"b": ["nu\0l"]}}), &[])),
        ("ttl", NewBreadcrumb { ttl_type: Some(TtlType::Datetime), ..note("x") }),
        ("context.tool", NewBreadcrumb { schema_name: Some("tool.request.v1".into()), ..note("x") }),
    ];
    for (field, record) in bad {
        assert_eq!(fields(agent.create(record, None).await), [field]);
    }
    let id = agent.create(note("Good"), None).await.unwrap().id;
    let changes = BreadcrumbChanges { description: Some("nu\0l".into()), ..BreadcrumbChanges::default() };
    assert_eq!(fields(agent.update(id, 1, changes).await), ["description"]);
    assert_eq!(agent.get(id).await.unwrap().version, 1);
}

/// The limit belongs to the store. A transport can refuse the body before, with its own error.
pub async fn a_record_can_be_large_but_not_too_large(harness: &impl Harness) {
    let agent = alone(harness).await;
    let large = noted("Large", json!({"text": "x".repeat(MAX_RECORD_BYTES - 100)}), &[]);
    let id = agent.create(large.clone(), None).await.unwrap().id;
    assert_eq!(agent.get(id).await.unwrap().context, large.context);

    let too_large = noted("Large", json!({"text": "x".repeat(MAX_RECORD_BYTES)}), &[]);
    let refused = agent.create(too_large, None).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_) | StoreError::TooLarge { .. })), "{refused:?}");
}

pub async fn the_same_key_gets_the_first_response(harness: &impl Harness) {
    let agent = alone(harness).await;
    let first = agent.create(note("Once"), Some("key 1")).await.unwrap();
    let again = agent.create(note("Once"), Some("key 1")).await.unwrap();
    assert_eq!((again.id, again.version), (first.id, first.version));
    assert_eq!((first.replayed, again.replayed), (false, true));
    assert_eq!(agent.create(note("Other"), Some("key 1")).await, Err(StoreError::IdempotencyMismatch));
    assert_ne!(agent.create(note("Once"), Some("key 2")).await.unwrap().id, first.id);
    // A key belongs to its agent.
    let other = harness.agent(agent.identity.owner_id).await;
    assert_ne!(other.create(note("Once"), Some("key 1")).await.unwrap().id, first.id);
    assert_eq!(agent.list(&BreadcrumbQuery::tagged("note")).await.unwrap().len(), 3);
    for key in ["", &"k".repeat(256)] {
        assert!(matches!(agent.create(note("Once"), Some(key)).await, Err(StoreError::Invalid(_))));
    }
}

pub async fn the_same_key_under_another_trace_gets_the_first_response(harness: &impl Harness) {
    let agent = alone(harness).await;
    let traced = |traceparent: &str| {
        let mut record = request();
        record.context.insert("traceparent".into(), json!(traceparent));
        record
    };
    let first =
        agent.create(traced("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), Some("k")).await.unwrap();
    let again =
        agent.create(traced("00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"), Some("k")).await.unwrap();
    assert_eq!((again.id, again.replayed), (first.id, true));
    assert_eq!(agent.create(request(), Some("k")).await.unwrap().id, first.id);
}

pub async fn the_same_key_at_the_same_time_makes_one_record(harness: &impl Harness) {
    let agent = alone(harness).await;
    let creates = (0..8).map(|_| {
        let agent = agent.clone();
        tokio::spawn(async move { agent.create(request(), Some("at once")).await.unwrap() })
    });
    let answers = futures::future::join_all(creates).await;
    let ids: std::collections::HashSet<Uuid> = answers.iter().map(|answer| answer.as_ref().unwrap().id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(answers.iter().filter(|answer| !answer.as_ref().unwrap().replayed).count(), 1);
    assert_eq!(agent.claim(&crate::harness::claim_of(10)).await.unwrap().len(), 1);
}

pub async fn another_tenant_sees_nothing(harness: &impl Harness) {
    let (agent, stranger) = (alone(harness).await, alone(harness).await);
    let id = agent.create(note("Mine"), Some("key")).await.unwrap().id;
    assert_not_found(stranger.get(id).await);
    assert_not_found(stranger.history(id).await);
    assert_not_found(stranger.update(id, 1, BreadcrumbChanges::default()).await);
    assert_not_found(stranger.delete(id, None).await);
    assert!(stranger.list(&BreadcrumbQuery::tagged("note")).await.unwrap().is_empty());
    assert_ne!(stranger.create(note("Mine"), Some("key")).await.unwrap().id, id);
    assert_eq!(agent.get(id).await.unwrap().version, 1);
}

pub async fn one_of_many_writers_of_a_version_succeeds(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create(note("Contested"), None).await.unwrap().id;
    let writers = (0..50).map(|writer| {
        let agent = agent.clone();
        tokio::spawn(async move {
            let title = Some(format!("Writer {writer}"));
            agent.update(id, 1, BreadcrumbChanges { title, ..BreadcrumbChanges::default() }).await
        })
    });
    let results = tokio::time::timeout(PATIENCE, futures::future::join_all(writers)).await.unwrap();
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().map(Result::unwrap).partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 49));
    for refusal in lost {
        assert_eq!(refusal, Err(StoreError::VersionConflict { expected: 1, actual: 2 }));
    }
    assert_eq!(agent.get(id).await.unwrap(), *won[0].as_ref().unwrap());
    assert_eq!(agent.history(id).await.unwrap().len(), 2);
}
