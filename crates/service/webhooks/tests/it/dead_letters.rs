//! Dead letters: listed, retried, deleted.

use std::time::Duration;

use rcrt_breadcrumb::{Retention, StoreError};
use rcrt_webhooks::DeliveryOptions;
use uuid::Uuid;

use crate::harness::{Delivering, Receiver, World, options, status};

#[tokio::test]
async fn dead_letters_are_listed_retried_and_deleted() {
    let world = World::start().await;
    let mut receiver = Receiver::start((0..4).map(|_| status(500)).collect()).await;
    let webhook = world.webhook(&receiver.url).await;
    let options = DeliveryOptions { max_attempts: 2, slow_from: 100, ..options() };
    let delivering = Delivering::start(&world.store, options);
    world.write("one").await;
    let first = receiver.next().await;
    world.until("SELECT count(*) FROM deliveries WHERE state = 'waiting' AND attempts = 1", 1).await;
    world.time_passes().await;
    receiver.next().await;
    world.until("SELECT count(*) FROM deliveries WHERE state = 'dead'", 1).await;
    let letters = world.webhooks().dead_letters(world.tenant, 100, 0).await.unwrap();
    let letter = letters[0].clone();
    assert_eq!((letter.attempts, letter.last_error.as_str()), (2, "the receiver responded with 500"));
    assert_eq!((letter.webhook_id, letter.agent_id, &letter.url), (webhook.id, world.agent, &receiver.url));
    assert_eq!(letter.payload, first.json());
    assert_eq!(letter.id.to_string(), first.header("webhook-id"));
    assert!(world.webhooks().dead_letters(world.tenant, 100, 1).await.unwrap().is_empty());

    // Two more failed attempts, then a success.
    for _ in 0..2 {
        world.webhooks().retry_dead_letter(world.tenant, letter.id).await.unwrap();
        receiver.next().await;
        world.until("SELECT count(*) FROM deliveries WHERE state = 'waiting' AND attempts = 1", 1).await;
        world.sql("UPDATE deliveries SET state = 'dead', dead_at = now()").await;
    }
    world.webhooks().retry_dead_letter(world.tenant, letter.id).await.unwrap();
    assert_eq!(receiver.next().await.header("webhook-id"), letter.id.to_string());
    world.until("SELECT count(*) FROM deliveries", 0).await;
    let gone = world.webhooks().retry_dead_letter(world.tenant, letter.id).await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })), "{gone:?}");
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn old_deliveries_become_dead_letters_which_are_bounded() {
    let world = World::start().await;
    world.webhook("https://nowhere.example/").await;
    for number in 0..6 {
        world.write(&number.to_string()).await;
    }
    world.until("SELECT count(*) FROM deliveries", 6).await;
    let queue = world.store.deliveries();
    let retention = Retention { waiting: Duration::from_hours(1), dead: Duration::from_hours(24), most_dead: 100 };
    assert_eq!(queue.purge(&retention).await.unwrap(), 0);
    world.sql("UPDATE deliveries SET queued_at = now() - interval '2 hours'").await;
    assert_eq!(queue.purge(&retention).await.unwrap(), 6);
    let letters = world.webhooks().dead_letters(world.tenant, 100, 0).await.unwrap();
    assert!(
        letters.len() == 6 && letters.iter().all(|letter| letter.last_error == "it waited too long"),
        "{letters:?}"
    );
    assert_eq!(queue.purge(&Retention { most_dead: 4, ..retention }).await.unwrap(), 2);
    world.sql("UPDATE deliveries SET dead_at = now() - interval '2 days'").await;
    assert_eq!(queue.purge(&retention).await.unwrap(), 4);
    assert_eq!(world.count("SELECT count(*) FROM deliveries").await, 0);
    world.store.close().await;
}

#[tokio::test]
async fn dead_letters_are_separate_for_each_tenant() {
    let world = World::start().await;
    let webhook = world.webhook("https://nowhere.example/").await;
    world.write("one").await;
    world.write("two").await;
    world.until("SELECT count(*) FROM deliveries", 2).await;
    world.sql("UPDATE deliveries SET state = 'dead', dead_at = now(), last_error = 'x'").await;
    let (webhooks, stranger) =
        (world.webhooks(), rcrt_breadcrumb::Tenancy::ensure_tenant(&*world.store, "b").await.unwrap().id);
    let letter = webhooks.dead_letters(world.tenant, 1, 0).await.unwrap().remove(0);
    assert!(webhooks.dead_letters(stranger, 10, 0).await.unwrap().is_empty());
    assert!(webhooks.retry_dead_letter(stranger, letter.id).await.is_err());
    assert!(webhooks.delete_dead_letter(stranger, letter.id).await.is_err());
    assert_eq!(webhooks.delete_dead_letters(stranger).await.unwrap(), 0);
    assert!(webhooks.webhooks(stranger, world.agent).await.unwrap().is_empty());
    assert!(webhooks.delete_webhook(stranger, world.agent, world.agent, webhook.id).await.is_err());
    assert!(webhooks.pause_webhook(stranger, world.agent, webhook.id, true).await.is_err());
    // Another agent of the same tenant does not have this webhook either.
    assert!(webhooks.delete_webhook(world.tenant, Uuid::new_v4(), world.agent, webhook.id).await.is_err());
    assert_eq!(webhooks.dead_letters(world.tenant, 10, 0).await.unwrap().len(), 2);
    webhooks.delete_dead_letter(world.tenant, letter.id).await.unwrap();
    assert_eq!(webhooks.delete_dead_letters(world.tenant).await.unwrap(), 1);
    world.store.close().await;
}
