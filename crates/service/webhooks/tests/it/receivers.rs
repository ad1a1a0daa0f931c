//! Receivers that misbehave.

use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use rcrt_breadcrumb::{EgressOutcome, WebhookState};
use rcrt_egress::{DeniedHost, EgressRecorder};
use rcrt_webhooks::DeliveryOptions;

use crate::harness::{Delivering, HOST, Receiver, World, options, silent, status};

#[tokio::test]
async fn a_hanging_receiver_does_not_block_others() {
    let world = World::start().await;
    let (url, mut came) = silent().await;
    world.webhook(&url).await;
    let mut other = Receiver::start(vec![]).await;
    world.webhook(&other.url).await;
    // Two attempts at a time: the silent receiver holds one of them.
    let options = DeliveryOptions { most: 2, timeout: Duration::from_mins(10), ..options() };
    let delivering = Delivering::start(&world.store, options);
    let titles: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    for title in &titles {
        world.write(title).await;
    }
    came.recv().await.unwrap();
    for title in &titles {
        assert_eq!(other.next().await.title(), *title);
    }
    world.until("SELECT count(*) FROM deliveries", 20).await;
    assert_eq!(world.count("SELECT count(*) FROM deliveries WHERE state = 'sending'").await, 1);
    assert!(came.try_recv().is_err(), "one at a time");
    delivering.task.abort();
    world.store.close().await;
}

#[tokio::test]
async fn a_silent_receiver_times_out() {
    let world = World::start().await;
    let (url, mut came) = silent().await;
    let webhook = world.webhook(&url).await;
    let delivering =
        Delivering::start(&world.store, DeliveryOptions { timeout: Duration::from_millis(200), ..options() });
    world.write("one").await;
    came.recv().await.unwrap();
    world.until("SELECT count(*) FROM deliveries WHERE state = 'waiting' AND attempts = 1", 1).await;
    let error = world.info(webhook.id).await.last_error.unwrap();
    assert!(error.contains("no answer") || error.contains("longer") || error.contains("complete"), "{error}");
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn an_endless_response_counts_as_delivered() {
    let world = World::start().await;
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let port = rcrt_test_servers::raw::floods(head, format!("1000\r\n{}\r\n", "x".repeat(4096))).await;
    let webhook = world.webhook(&format!("http://{HOST}:{port}/")).await;
    let delivering = Delivering::start(&world.store, options());
    world.write("one").await;
    world.until("SELECT count(*) FROM webhooks WHERE delivered_at IS NOT NULL", 1).await;
    assert_eq!(world.info(webhook.id).await.failures, 0);
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn a_receiver_that_responds_410_gets_no_more_deliveries() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![status(410)]).await;
    let webhook = world.webhook(&receiver.url).await;
    let delivering = Delivering::start(&world.store, options());
    world.write("one").await;
    receiver.next().await;
    world.until("SELECT count(*) FROM webhooks WHERE state = 'paused'", 1).await;
    let info = world.info(webhook.id).await;
    assert_eq!(info.state, WebhookState::Paused);
    assert_eq!(info.paused_because.unwrap(), "the receiver responded with 410 Gone");
    assert_eq!(world.count("SELECT count(*) FROM deliveries WHERE state = 'dead'").await, 1);
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let world = World::start().await;
    let mut inside = Receiver::start(vec![]).await;
    let port = inside.url.split(':').nth(2).unwrap().split('/').next().unwrap();
    let away = |location: String| (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response();
    let mut receivers = Vec::new();
    for location in ["/elsewhere".to_owned(), format!("http://127.0.0.1:{port}/hook"), inside.url.clone()] {
        let receiver = Receiver::start(vec![away(location)]).await;
        receivers.push((world.webhook(&receiver.url).await, receiver));
    }
    let delivering = Delivering::start(&world.store, options());
    world.write("one").await;
    for (_, receiver) in &mut receivers {
        receiver.next().await;
    }
    world.until("SELECT count(*) FROM webhooks WHERE failures = 1", 3).await;
    for (webhook, _) in &receivers {
        assert!(world.info(webhook.id).await.last_error.unwrap().contains("redirects are not followed"));
    }
    assert!(inside.rest().is_empty());
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn retry_after_pauses_all_deliveries_of_the_receiver() {
    let world = World::start().await;
    let busy = (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "600")]).into_response();
    let mut receiver = Receiver::start(vec![busy]).await;
    world.webhook(&receiver.url).await;
    let delivering = Delivering::start(&world.store, options());
    world.write("one").await;
    receiver.next().await;
    world.until("SELECT count(*) FROM webhooks WHERE held_until > now() + interval '9 minutes'", 1).await;
    world.write("two").await;
    world.until("SELECT count(*) FROM deliveries", 2).await;
    world.sql("UPDATE deliveries SET due_at = now()").await;
    let mut watch = Receiver::start(vec![]).await;
    world.webhook(&watch.url).await;
    world.write("three").await;
    watch.next().await;
    assert!(receiver.rest().is_empty());
    world.time_passes().await;
    // All are due at the same time, so they have no order.
    let mut titles = [receiver.next().await, receiver.next().await, receiver.next().await].map(|one| one.title());
    titles.sort_unstable();
    assert_eq!(titles, ["one", "three", "two"]);
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn a_failing_receiver_gets_one_delivery_at_a_time_until_it_recovers() {
    let world = World::start().await;
    let mut receiver = Receiver::start((0..5).map(|_| status(503)).collect()).await;
    let webhook = world.webhook(&receiver.url).await;
    let pause = Duration::from_hours(1);
    let options =
        DeliveryOptions { slow_from: 2, per_webhook: 4, first_pause: pause, longest_pause: pause, ..options() };
    for title in ["a", "b", "c", "d", "e", "f"] {
        world.write(title).await;
    }
    world.until("SELECT count(*) FROM deliveries", 6).await;
    let delivering = Delivering::start(&world.store, options);
    // The first four attempts run before the first failure is known. The fifth runs alone and is
    // the last.
    world
        .until("SELECT count(*) FROM webhooks WHERE failures = 5 AND held_until > now() + interval '20 minutes'", 1)
        .await;
    assert_eq!(receiver.rest().len(), 5);
    assert_eq!(world.info(webhook.id).await.waiting, 6);
    world.time_passes().await;
    world.until("SELECT count(*) FROM deliveries", 0).await;
    assert_eq!(receiver.rest().len(), 6);
    assert_eq!(world.info(webhook.id).await.failures, 0);
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn an_internal_receiver_that_is_not_allowed_is_refused_and_logged() {
    let world = World::start().await;
    let receiver = Receiver::start(vec![]).await;
    let port = receiver.url.split(':').nth(2).unwrap().split('/').next().unwrap();
    for host in ["outside.test", "127.0.0.1", "[::1]", "169.254.169.254", "2130706433"] {
        world.webhook(&format!("http://{host}:{port}/hook")).await;
    }
    let delivering = Delivering::start(&world.store, options());
    world.write("one").await;
    world.until("SELECT count(*) FROM deliveries WHERE state = 'dead' AND attempts = 1", 5).await;
    let dead = world.webhooks().dead_letters(world.tenant, 100, 0).await.unwrap();
    assert!(dead.iter().all(|letter| letter.last_error.contains("non-public address")), "{dead:?}");
    for host in ["outside.test", "127.0.0.1"] {
        let option = format!("--allow-private-host webhooks={host}:{port}");
        assert!(dead.iter().any(|letter| letter.last_error.ends_with(&option)), "{option}: {dead:?}");
    }
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn denied_receivers_are_refused_and_each_attempt_is_logged() {
    let world = World::start().await;
    let receiver = Receiver::start(vec![]).await;
    let port = receiver.url.split(':').nth(2).unwrap().split('/').next().unwrap().to_owned();
    world.webhook(&receiver.url).await;
    for (denied, is_delivered) in [("127.0.0.0/8", false), (HOST, false), ("*.receiver.test", true)] {
        let (log, mut records) = EgressRecorder::new();
        let rule: DeniedHost = denied.parse().unwrap();
        let delivering = Delivering::start_with(&world.store, options(), |egress| {
            (egress.denied, egress.log) = (vec![rule].into(), Some(log));
        });
        world.write("one").await;
        let (owner_id, record) = records.recv().await.unwrap();
        assert_eq!((owner_id, &*record.tool, &*record.host), (world.tenant, "webhooks", HOST), "{denied}");
        assert_eq!((record.port.to_string(), &*record.method, record.call.is_some()), (port.clone(), "POST", true));
        assert_eq!(record.outcome == EgressOutcome::Answered, is_delivered, "{denied}: {record:?}");
        assert_eq!(record.outcome == EgressOutcome::Refused, !is_delivered, "{denied}: {record:?}");
        delivering.stop().await;
    }
    world.store.close().await;
}
