//! Events, from the store to their receivers.

use std::time::Duration;

use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, NewWebhook, Role, Selector, Sensitivity, Visibility};
use rcrt_webhooks::DeliveryOptions;
use serde_json::json;

use crate::harness::{Delivering, Receiver, World, options, status};

#[tokio::test]
async fn each_change_is_posted_once_and_in_order() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![]).await;
    world.write("before").await;
    let webhook = world.webhook(&receiver.url).await;
    let delivering = Delivering::start(&world.store, options());
    let id = world.write("one").await;
    let changes = BreadcrumbChanges { title: Some("changed".into()), ..BreadcrumbChanges::default() };
    world.records.update(id, 1, changes).await.unwrap();
    world.records.delete(id, None).await.unwrap();
    for (kind, version) in [("created", 1), ("updated", 2), ("deleted", 2)] {
        let mut received = receiver.next().await;
        // The event of a commit just before the webhook was created can arrive too.
        if received.title() == "before" {
            received = receiver.next().await;
        }
        let event = received.json();
        assert_eq!(event["type"], format!("breadcrumb.{kind}"), "{event}");
        assert_eq!((&event["breadcrumb_id"], &event["version"]), (&json!(id), &json!(version)));
        assert_eq!((&event["owner_id"], &event["context"]), (&json!(world.tenant), &json!({"title": "one"})));
        assert_eq!(received.header("content-type"), "application/json");
        // No secret is set, so there is no signature.
        assert_eq!((received.header("webhook-signature"), received.header("x-rcrt-signature")), ("", ""));
    }
    world.until("SELECT count(*) FROM deliveries", 0).await;
    assert!(receiver.rest().is_empty());
    let info = world.info(webhook.id).await;
    assert!(info.delivered_at.is_some() && info.failures == 0 && info.last_error.is_none(), "{info:?}");
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn a_webhook_gets_the_events_that_its_selector_matches() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![]).await;
    let mut other = Receiver::start(vec![]).await;
    let selector = Selector { any_tags: vec!["b".into()], ..Selector::default() };
    world.webhook_for(&receiver.url, Some(selector)).await;
    world.webhook(&other.url).await;
    let delivering = Delivering::start(&world.store, options());
    for title in ["a", "b", "c"] {
        world.write(title).await;
    }
    assert_eq!(receiver.next().await.title(), "b");
    for title in ["a", "b", "c"] {
        assert_eq!(other.next().await.title(), title);
    }
    world.until("SELECT count(*) FROM deliveries", 0).await;
    assert!(receiver.rest().is_empty());
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn a_failure_is_retried_with_the_same_id_without_blocking_later_events() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![status(500)]).await;
    let webhook = world.webhook(&receiver.url).await;
    // The pause is random up to this. With the default of 2 s it would often be over before the
    // next event arrives.
    let month = Duration::from_hours(24 * 30);
    let options = DeliveryOptions { first_pause: month, longest_pause: month, ..options() };
    let delivering = Delivering::start(&world.store, options);
    world.write("one").await;
    let first = receiver.next().await;
    world.until("SELECT count(*) FROM deliveries WHERE state = 'waiting' AND due_at > now()", 1).await;
    assert_eq!(world.info(webhook.id).await.last_error.unwrap(), "the receiver responded with 500");
    world.write("two").await;
    assert_eq!(receiver.next().await.title(), "two");
    world.time_passes().await;
    let again = receiver.next().await;
    assert_eq!((again.title(), again.header("webhook-id")), ("one".into(), first.header("webhook-id")));
    world.until("SELECT count(*) FROM deliveries", 0).await;
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn a_paused_webhook_resumes_with_its_queued_deliveries() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![]).await;
    let webhook = world.webhook(&receiver.url).await;
    world.write("waited").await;
    world.until("SELECT count(*) FROM deliveries", 1).await;
    let paused = world.webhooks().pause_webhook(world.tenant, world.agent, webhook.id, true).await.unwrap();
    assert_eq!(paused.paused_because.as_deref(), Some("paused by request"));
    let mut watch = Receiver::start(vec![]).await;
    world.webhook(&watch.url).await;
    let delivering = Delivering::start(&world.store, options());
    world.write("meanwhile").await;
    assert_eq!(watch.next().await.title(), "meanwhile");
    assert!(receiver.rest().is_empty());
    world.webhooks().pause_webhook(world.tenant, world.agent, webhook.id, false).await.unwrap();
    world.write("later").await;
    assert_eq!([receiver.next().await.title(), receiver.next().await.title()], ["waited", "later"]);
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn nothing_is_delivered_for_a_deleted_webhook_or_agent() {
    let world = World::start().await;
    let (mut one, mut two) = (Receiver::start(vec![]).await, Receiver::start(vec![]).await);
    let first = world.webhook(&one.url).await;
    world.webhook(&two.url).await;
    world.write("queued").await;
    world.until("SELECT count(*) FROM deliveries", 2).await;
    world.webhooks().delete_webhook(world.tenant, world.agent, world.agent, first.id).await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM deliveries").await, 1);
    let delivering = Delivering::start(&world.store, options());
    assert_eq!(two.next().await.title(), "queued");
    rcrt_breadcrumb::Tenancy::delete_agent(&*world.store, world.tenant, None, world.agent).await.unwrap();
    world.write("after").await;
    world
        .until(
            "SELECT count(*) FROM event_cursors c WHERE NOT EXISTS (
            SELECT FROM events e WHERE e.owner_id = c.owner_id AND e.number > c.number)",
            1,
        )
        .await;
    assert_eq!(world.count("SELECT count(*) FROM deliveries").await, 0);
    assert!(one.rest().is_empty() && two.rest().is_empty());
    delivering.stop().await;
    world.store.close().await;
}

/// With so many webhooks, each could examine 10,000 items, and a record with more was not
/// delivered.
#[tokio::test]
async fn one_of_many_webhooks_gets_records_with_long_arrays() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![]).await;
    let selector = |selector| Some(serde_json::from_value::<Selector>(selector).unwrap());
    let contains = json!({"path": "$.many", "op": "contains", "value": 2});
    world.webhook_for(&receiver.url, selector(json!({"context_match": [contains]}))).await;
    world.webhook_for(&receiver.url, selector(json!({"schema_name": "other.v1"}))).await;
    world
        .sql(
            "INSERT INTO webhooks (id, owner_id, agent_id, url, selector, after)
             SELECT gen_random_uuid(), owner_id, agent_id, url, selector, after
             FROM webhooks, generate_series(1, 998) WHERE selector ->> 'schema_name' = 'other.v1'",
        )
        .await;
    assert_eq!(world.count("SELECT count(*) FROM webhooks").await, 1000);
    for title in ["one", "two", "three"] {
        let mut many = vec![0; 20_000];
        many.push(2);
        let context = json!({"title": title, "many": many}).as_object().unwrap().clone();
        let record = NewBreadcrumb { title: title.into(), context, ..NewBreadcrumb::default() };
        world.records.create(record, None).await.unwrap();
    }
    world.until("SELECT count(*) FROM deliveries", 3).await;
    let delivering = Delivering::start(&world.store, options());
    for title in ["one", "two", "three"] {
        assert_eq!(receiver.next().await.title(), title);
    }
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn a_webhook_without_a_selector_uses_the_agents_selectors() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![]).await;
    world.webhook(&receiver.url).await;
    let selector = Selector { any_tags: vec!["b".into()], ..Selector::default() };
    world.records.create_selector(selector).await.unwrap();
    let delivering = Delivering::start(&world.store, options());
    for title in ["a", "b", "c"] {
        world.write(title).await;
    }
    assert_eq!(receiver.next().await.title(), "b");
    world.until("SELECT count(*) FROM deliveries", 0).await;
    assert!(receiver.rest().is_empty());
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn queued_events_that_become_secret_or_unselected_are_not_delivered() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![]).await;
    let other = world.another(Role::Subscriber).await;
    let hook = NewWebhook { url: receiver.url.clone(), selector: None, description: None };
    world.webhooks().create_webhook(world.tenant, other, other, hook).await.unwrap();
    let (secret, private) = (world.write("becomes secret").await, world.write("becomes private").await);
    world.until("SELECT count(*) FROM deliveries", 2).await;
    let now = |sensitivity, visibility| BreadcrumbChanges { sensitivity, visibility, ..BreadcrumbChanges::default() };
    world.records.update(secret, 1, now(Some(Sensitivity::Secret), None)).await.unwrap();
    world.records.update(private, 1, now(None, Some(Visibility::Private))).await.unwrap();
    world.write("last").await;
    world.until("SELECT count(*) FROM deliveries", 4).await;
    let delivering = Delivering::start(&world.store, options());
    let first = receiver.next().await;
    assert_eq!((&first.json()["breadcrumb_id"], &first.json()["context"]), (&json!(secret), &json!({})));
    assert_eq!(receiver.next().await.json()["redacted"], json!(true));
    assert_eq!(receiver.next().await.title(), "last");
    world.until("SELECT count(*) FROM deliveries", 0).await;
    assert!(receiver.rest().is_empty());
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn an_agent_gets_visible_records_without_secret_contents() {
    let world = World::start().await;
    let (mut mine, mut others) = (Receiver::start(vec![]).await, Receiver::start(vec![]).await);
    world.webhook(&mine.url).await;
    let other = world.another(Role::Subscriber).await;
    let hook = NewWebhook { url: others.url.clone(), selector: None, description: None };
    world.webhooks().create_webhook(world.tenant, other, other, hook).await.unwrap();
    let delivering = Delivering::start(&world.store, options());
    for (title, visibility, sensitivity) in [
        ("private", Visibility::Private, Sensitivity::Low),
        ("secret", Visibility::Team, Sensitivity::Secret),
        ("team", Visibility::Team, Sensitivity::Low),
    ] {
        let record = NewBreadcrumb {
            title: title.into(),
            context: json!({"title": title}).as_object().unwrap().clone(),
            visibility,
            sensitivity,
            ..NewBreadcrumb::default()
        };
        world.records.create(record, None).await.unwrap();
    }
    for (receiver, titles) in [(&mut mine, vec!["private", "", "team"]), (&mut others, vec!["", "team"])] {
        for title in titles {
            let received = receiver.next().await;
            assert_eq!(received.title(), title);
            assert_eq!(received.json()["redacted"], if title.is_empty() { json!(true) } else { json!(null) });
            assert!(!received.body.contains("secret"), "{}", received.body);
        }
    }
    world.until("SELECT count(*) FROM deliveries", 0).await;
    assert!(mine.rest().is_empty() && others.rest().is_empty());
    delivering.stop().await;
    world.store.close().await;
}

/// 10,000 deliveries wait already: copies of one in the database, which is faster than as many
/// events.
#[tokio::test]
async fn a_webhook_with_too_many_waiting_deliveries_is_paused() {
    let world = World::start().await;
    let webhook = world.webhook("http://receiver.test/hook").await;
    world.write("first").await;
    world.until("SELECT count(*) FROM deliveries", 1).await;
    world
        .sql(
            "INSERT INTO deliveries (owner_id, id, webhook_id, event, breadcrumb_id, version, payload, size_bytes)
             SELECT owner_id, gen_random_uuid(), webhook_id, -n, breadcrumb_id, version, payload, size_bytes
             FROM deliveries, generate_series(1, 9998) n",
        )
        .await;
    world.write("the last that fits").await;
    world.until("SELECT count(*) FROM deliveries", 10_000).await;
    assert_eq!(world.info(webhook.id).await.paused_because, None);
    world.write("one too many").await;
    world.until("SELECT count(*) FROM webhooks WHERE state = 'paused'", 1).await;
    let info = world.info(webhook.id).await;
    assert_eq!(info.paused_because.unwrap(), "more than 10000 deliveries, or 256 MiB of them, wait");
    // Another webhook gets the event, so this one was passed over.
    world.webhook("http://receiver.test/other").await;
    world.write("while it is paused").await;
    world.until("SELECT count(*) FROM deliveries WHERE payload::text LIKE '%while it is paused%'", 1).await;
    world.until("SELECT count(*) FROM deliveries", 10_002).await;
    world.store.close().await;
}
