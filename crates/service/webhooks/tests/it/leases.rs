//! Concurrent deliverers, and deliverers that are killed.

use std::collections::BTreeMap;

use crate::harness::{Delivering, Receiver, World, open, options, silent};

#[tokio::test]
async fn two_servers_deliver_each_event_once() {
    let world = World::start().await;
    let other = open(&world.database).await;
    let mut receiver = Receiver::start(vec![]).await;
    let options = rcrt_webhooks::DeliveryOptions { per_webhook: 8, ..options() };
    world.webhook(&receiver.url).await;
    let both = [Delivering::start(&world.store, options.clone()), Delivering::start(&other, options)];
    for number in 0..60 {
        world.write(&number.to_string()).await;
    }
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..60 {
        *times.entry(receiver.next().await.header("webhook-id").to_owned()).or_default() += 1;
    }
    world.until("SELECT count(*) FROM deliveries", 0).await;
    assert!(receiver.rest().is_empty());
    assert!(times.len() == 60 && times.values().all(|count| *count == 1), "{times:?}");
    for delivering in both {
        delivering.stop().await;
    }
    other.close().await;
    world.store.close().await;
}

#[tokio::test]
async fn deliveries_of_a_dead_deliverer_are_repeated_after_their_lease() {
    let world = World::start().await;
    let (url, mut came) = silent().await;
    let webhook = world.webhook(&url).await;
    let first = Delivering::start(&world.store, options());
    world.write("held").await;
    came.recv().await.unwrap();
    // It has no time to release anything.
    first.task.abort();
    assert_eq!(world.count("SELECT count(*) FROM deliveries WHERE state = 'sending' AND lease_until > now()").await, 1);

    let other = open(&world.database).await;
    let second = Delivering::start(&other, options());
    let mut watch = Receiver::start(vec![]).await;
    world.webhook(&watch.url).await;
    world.write("another").await;
    watch.next().await;
    assert!(came.try_recv().is_err(), "the lease holds");
    world.sql("UPDATE deliveries SET lease_until = now() WHERE state = 'sending'").await;
    came.recv().await.unwrap();
    assert_eq!(world.count("SELECT attempts::bigint FROM deliveries WHERE state = 'sending'").await, 2);
    assert_eq!(world.info(webhook.id).await.failures, 0);
    second.task.abort();
    other.close().await;
    world.store.close().await;
}

#[tokio::test]
async fn a_deliverer_without_a_lease_cannot_write_the_result() {
    let world = World::start().await;
    let (queue, receiver) = (world.store.deliveries(), Receiver::start(vec![]).await);
    let webhook = world.webhook(&receiver.url).await;
    world.write("one").await;
    world.until("SELECT count(*) FROM deliveries", 1).await;
    let request = rcrt_breadcrumb::DeliveryClaimRequest {
        most: 5,
        per_webhook: 5,
        slow_from: 5,
        lease: std::time::Duration::from_mins(1),
    };
    let lost = queue.claim(&request).await.unwrap().remove(0);
    assert!(queue.claim(&request).await.unwrap().is_empty());
    world.sql("UPDATE deliveries SET lease_until = now()").await;
    let held = queue.claim(&request).await.unwrap().remove(0);
    assert_eq!((held.id, held.attempt), (lost.id, 2));
    queue.complete(&lost, &rcrt_breadcrumb::DeliveryOutcome::Gone { error: "late".into() }).await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM deliveries WHERE state = 'sending'").await, 1);
    assert_eq!(world.info(webhook.id).await.state, rcrt_breadcrumb::WebhookState::Active);
    queue.complete(&held, &rcrt_breadcrumb::DeliveryOutcome::Delivered).await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM deliveries").await, 0);
    world.store.close().await;
}

#[tokio::test]
async fn a_backlog_leaves_room_for_other_webhooks() {
    let world = World::start().await;
    let queue = world.store.deliveries();
    let full = world.webhook("https://one.example/").await;
    for number in 0..30 {
        world.write(&number.to_string()).await;
    }
    let other = world.webhook("https://two.example/").await;
    world.write("last").await;
    world
        .until("SELECT count(*) FROM deliveries d JOIN webhooks w ON w.id = webhook_id WHERE url LIKE '%one%'", 31)
        .await;
    let request = rcrt_breadcrumb::DeliveryClaimRequest {
        most: 10,
        per_webhook: 20,
        slow_from: 5,
        lease: std::time::Duration::from_mins(1),
    };
    let taken = queue.claim(&request).await.unwrap();
    assert_eq!(taken.len(), 10);
    assert_eq!(taken.iter().filter(|delivery| delivery.webhook_id == other.id).count(), 1);
    let events: Vec<&str> =
        taken.iter().filter(|one| one.webhook_id == full.id).map(|one| one.payload.as_str()).collect();
    assert_eq!(events.len(), 9);
    world.store.close().await;
}
