//! How long records are kept by their definition.

use chrono::{TimeDelta, Utc};
use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, TtlType};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{assert_not_found, noted};
use serde_json::json;

use crate::harness::{LayerHarness, of_notes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_without_a_time_to_live_gets_the_one_of_its_schema_name() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    agent.create(of_notes(json!({"ttl": {"ttl_type": "usage", "ttl_config": {"max_reads": 1}}})), None).await.unwrap();
    let note = || noted("x", json!({"n": 1}), &[]);
    let once = agent.create(note(), None).await.unwrap().id;
    assert_eq!(agent.get(once).await.unwrap().reads_left, Some(0));
    assert_not_found(agent.get(once).await);
    // A record's own time to live applies.
    let own = NewBreadcrumb { ttl_type: Some(TtlType::Never), ..note() };
    let own = agent.create(own, None).await.unwrap().id;
    for _ in 0..3 {
        assert_eq!(agent.get(own).await.unwrap().ttl_type, Some(TtlType::Never));
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_override_the_definitions_time_to_live_applies() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let ttl = json!({"type": "duration", "config": {"duration": "1h"}, "allow_override": false});
    agent.create(of_notes(json!({"ttl": ttl})), None).await.unwrap();
    let never = NewBreadcrumb { ttl_type: Some(TtlType::Never), ..noted("x", json!({"n": 1}), &[]) };
    let id = agent.create(never, None).await.unwrap().id;
    let first = agent.get(id).await.unwrap();
    assert_eq!((first.ttl_type, first.ttl_config), (Some(TtlType::Duration), Some(json!({"duration": 3600}))));
    let never = BreadcrumbChanges { ttl_type: Some(TtlType::Never), ..BreadcrumbChanges::default() };
    let changed = agent.update(id, 1, never).await.unwrap();
    assert_eq!(changed.ttl_type, Some(TtlType::Duration));
    assert!(changed.ttl.unwrap() > first.ttl.unwrap());
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_in_the_past_is_a_warning() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let until = |ttl| NewBreadcrumb { ttl: Some(ttl), ..noted("x", json!({"n": 1}), &[]) };
    let named = |record: NewBreadcrumb| NewBreadcrumb { schema_name: Some("other.v1".into()), ..record };
    let hour = TimeDelta::hours(1);
    for ended in [until(Utc::now() - hour), named(until(Utc::now() - hour))] {
        let created = agent.create(ended, None).await.unwrap();
        assert_eq!(created.warnings[0].field, "ttl");
        assert_not_found(agent.get(created.id).await);
    }
    assert!(agent.create(until(Utc::now() + hour), None).await.unwrap().warnings.is_empty());
    harness.close().await;
}
