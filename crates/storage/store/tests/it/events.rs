//! Events under adverse commit orders, and across processes and restarts.

use std::time::Duration;

use futures::{FutureExt, StreamExt};
use rcrt_breadcrumb::{BreadcrumbChanges, EventNumber, Selector, StoreError, SubscribeOptions, SubscriptionItem};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{next, note, noted};
use serde_json::json;
use sqlx::{Connection, Row};

use crate::harness::{StoreHarness, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_commit_with_a_lower_number_is_not_missed() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut live = agent.events(None).await.unwrap();

    // A writer that took its transaction's id early and commits late.
    let mut late = harness.admin().await;
    let mut open = late.begin().await.unwrap();
    sqlx::query("SELECT pg_current_xact_id()").execute(&mut *open).await.unwrap();

    let quick = agent.create(note("quick"), None).await.unwrap().id;
    let before = agent.latest_event().await.unwrap();
    let newest = agent.newest_committed_event().await.unwrap();
    let mut resumed = agent.events(Some(before)).await.unwrap();
    // The committed event waits for the older transaction.
    tokio::time::timeout(Duration::from_millis(300), live.next()).await.unwrap_err();

    let slow = uuid::Uuid::now_v7();
    sqlx::query(
        "INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
         VALUES ($1, event_number(0), 'breadcrumb.created', $2, 1, now(), 0)",
    )
    .bind(agent.identity.owner_id)
    .bind(slow)
    .execute(&mut *open)
    .await
    .unwrap();
    open.commit().await.unwrap();

    for events in [&mut live, &mut resumed] {
        let (first, second) = (next(events).await, next(events).await);
        assert_eq!((first.breadcrumb_id, second.breadcrumb_id), (slow, quick));
        assert!(before < first.number && first.number < second.number);
        assert_eq!(newest, second.number);
        assert!(events.next().now_or_never().is_none());
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolled_back_writer_leaves_nothing() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut live = agent.events(None).await.unwrap();
    let mut admin = harness.admin().await;
    let mut open = admin.begin().await.unwrap();
    sqlx::query("SELECT pg_current_xact_id()").execute(&mut *open).await.unwrap();
    let id = agent.create(note("kept"), None).await.unwrap().id;
    open.rollback().await.unwrap();
    assert_eq!(next(&mut live).await.breadcrumb_id, id);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_another_server_arrive() {
    let harness = StoreHarness::start().await;
    let other = open(&harness.database).await;
    let agent = harness.alone().await;
    let elsewhere = rcrt_breadcrumb::Tenancy::acting_as(&*other, agent.identity.clone());
    let mut events = elsewhere.events(None).await.unwrap();
    for title in ["one", "two", "three"] {
        let id = agent.create(note(title), None).await.unwrap().id;
        assert_eq!(next(&mut events).await.breadcrumb_id, id);
    }
    other.close().await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selector_changes_of_another_server_apply() {
    let harness = StoreHarness::start().await;
    let other = open(&harness.database).await;
    let agent = harness.alone().await;
    let elsewhere = rcrt_breadcrumb::Tenancy::acting_as(&*other, agent.identity.clone());
    let mut followed =
        elsewhere.subscribe(SubscribeOptions { by_selectors: true, ..SubscribeOptions::default() }).await.unwrap();
    let selector = Selector { any_tags: vec!["wanted".into()], ..Selector::default() };
    agent.create_selector(selector).await.unwrap();
    // Until it learns of the selectors, the other server sends every event.
    let mut is_chosen = false;
    while !is_chosen {
        let id = agent.create(note("unwanted"), None).await.unwrap().id;
        is_chosen = match followed.next().await.unwrap().unwrap() {
            SubscriptionItem::Event(event) => {
                assert_eq!(event.breadcrumb_id, id);
                false
            }
            SubscriptionItem::Skipped(_) => true,
            SubscriptionItem::Missed { .. } => panic!("nothing was missed"),
        };
    }
    let id = agent.create(noted("wanted", json!({}), &["wanted"]), None).await.unwrap().id;
    assert!(matches!(followed.next().await, Some(Ok(SubscriptionItem::Event(event))) if event.breadcrumb_id == id));
    other.close().await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn skipped_events_are_reported_by_number() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let filter = Selector { any_tags: vec!["wanted".into()], ..Selector::default() };
    let options = SubscribeOptions { after: Some(EventNumber(0)), filters: vec![filter], by_selectors: false };
    let mut followed = agent.subscribe(options).await.unwrap();
    let mut all = agent.events(Some(EventNumber(0))).await.unwrap();
    for _ in 0..3 {
        agent.create(note("unwanted"), None).await.unwrap();
        let number = next(&mut all).await.number;
        assert_eq!(followed.next().await, Some(Ok(SubscriptionItem::Skipped(number))));
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_and_the_pool_survive_the_loss_of_all_connections() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    let id = agent.create(note("before"), None).await.unwrap().id;
    assert_eq!(next(&mut events).await.breadcrumb_id, id);
    // The effect of a server crash on its clients.
    let mut admin = harness.admin().await;
    for title in ["after", "after again"] {
        sqlx::query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .execute(&mut admin)
        .await
        .unwrap();
        let id = agent.create(note(title), None).await.unwrap().id;
        assert_eq!(next(&mut events).await.breadcrumb_id, id);
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_ends_its_streams() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    let waiting = tokio::spawn(async move { (events.next().await, events.next().await.is_none()) });
    harness.store.close().await;
    let (last, is_over) = waiting.await.unwrap();
    assert!(matches!(last, Some(Err(StoreError::Unavailable(_)))), "{last:?}");
    assert!(is_over);
    assert!(matches!(agent.get(uuid::Uuid::nil()).await, Err(StoreError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pruning_deletes_old_events_and_what_only_they_need() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let kept = agent.create(noted("Kept", json!({"n": 1}), &[]), None).await.unwrap().id;
    agent.update(kept, 1, BreadcrumbChanges::default()).await.unwrap();
    let gone = agent.create(note("Gone"), None).await.unwrap().id;
    agent.delete(gone, None).await.unwrap();
    let mut admin = harness.admin().await;
    sqlx::query("UPDATE events SET at = at - interval '8 days'").execute(&mut admin).await.unwrap();
    let young = agent.create(note("Young"), None).await.unwrap().id;

    harness.store.prune().await.unwrap();
    // A subscriber that was away longer is notified, and continues with complete events.
    let mut stream = agent.subscribe(SubscribeOptions::all(Some(EventNumber(0)))).await.unwrap();
    let Some(Ok(SubscriptionItem::Missed { first })) = stream.next().await else { panic!("no Missed item") };
    assert!(matches!(stream.next().await, Some(Ok(SubscriptionItem::Event(event)))
        if event.breadcrumb_id == young && event.number >= first));
    let mut events = agent.events(Some(EventNumber(0))).await.unwrap();
    assert_eq!(events.next().await, Some(Err(StoreError::EventsMissed { first })));
    assert_eq!(events.next().await, None);
    // A subscriber that was not away that long is not notified.
    let mut events = agent.events(Some(EventNumber(first.0 - 1))).await.unwrap();
    assert_eq!(next(&mut events).await.breadcrumb_id, young, "continues from the oldest event left");
    assert_eq!(agent.history(kept).await.unwrap().len(), 2, "an existing record keeps its history");
    let left = sqlx::query("SELECT count(*) FROM breadcrumb_versions WHERE breadcrumb_id = $1")
        .bind(gone)
        .fetch_one(&mut admin)
        .await
        .unwrap();
    assert_eq!(left.get::<i64, _>(0), 0);
    harness.close().await;
}
