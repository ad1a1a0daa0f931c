//! Webhooks of single calls, whose updates have the form of A2A.

use rcrt_breadcrumb::{CallWebhook, MAX_CALL_WEBHOOKS, StoreError, ToolRequest};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Delivering, Receiver, World, options};

async fn request(world: &World) -> Uuid {
    world.records.create(ToolRequest::record("echo", json!({}), None, None), None).await.unwrap().id
}

fn webhook(request: Uuid, name: &str, url: &str) -> CallWebhook {
    CallWebhook {
        request,
        request_id: request.to_string(),
        name: name.to_owned(),
        url: url.to_owned(),
        context_id: "conversation".into(),
        headers: vec![("x-a2a-notification-token".into(), "a token".into())],
    }
}

async fn create(world: &World, webhook: CallWebhook) -> Result<(), StoreError> {
    world.webhooks().create_call_webhook(world.tenant, world.agent, webhook).await
}

#[tokio::test]
async fn the_end_of_a_call_is_posted_as_its_task() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![]).await;
    let (one, other) = (request(&world).await, request(&world).await);
    create(&world, webhook(one, "first", &receiver.url)).await.unwrap();
    let delivering = Delivering::start(&world.store, options());
    world.write("another record").await;
    world.records.cancel(other).await.unwrap();
    world.records.cancel(one).await.unwrap();
    let received = receiver.next().await;
    let task = &received.json()["task"];
    assert_eq!((&task["id"], &task["contextId"]), (&json!(one), &json!("conversation")));
    assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED", "{task}");
    assert_eq!(received.header("content-type"), "application/a2a+json");
    assert_eq!(received.header("x-a2a-notification-token"), "a token");
    world.until("SELECT count(*) FROM deliveries", 0).await;
    assert!(receiver.rest().is_empty());
    delivering.stop().await;
    world.store.close().await;
}

#[tokio::test]
async fn webhooks_of_a_call_are_listed_replaced_deleted_and_bounded() {
    let world = World::start().await;
    let hooks = world.webhooks();
    let (tenant, agent, one) = (world.tenant, world.agent, request(&world).await);
    create(&world, webhook(one, "a", "https://example.com/1")).await.unwrap();
    create(&world, webhook(one, "b", "https://example.com/2")).await.unwrap();
    create(&world, webhook(one, "a", "https://example.com/3")).await.unwrap();
    let listed = hooks.call_webhooks(tenant, agent, one).await.unwrap();
    let shown: Vec<(&str, &str)> = listed.iter().map(|one| (one.name.as_str(), one.url.as_str())).collect();
    assert_eq!(shown, [("b", "https://example.com/2"), ("a", "https://example.com/3")]);
    assert!(listed.iter().all(|one| one.headers.is_empty()), "headers are secret");
    // They are not among the webhooks of the agent, and another agent sees none.
    assert!(hooks.webhooks(tenant, agent).await.unwrap().is_empty());
    assert!(hooks.call_webhooks(tenant, Uuid::new_v4(), one).await.unwrap().is_empty());
    assert!(!hooks.delete_call_webhook(tenant, Uuid::new_v4(), one, "a").await.unwrap());
    assert!(hooks.delete_call_webhook(tenant, agent, one, "a").await.unwrap());
    assert!(!hooks.delete_call_webhook(tenant, agent, one, "a").await.unwrap());
    assert_eq!(world.count("SELECT count(*) FROM webhook_secrets").await, 1);

    for number in 1..MAX_CALL_WEBHOOKS {
        create(&world, webhook(one, &format!("n{number}"), "https://example.com/")).await.unwrap();
    }
    let refused = create(&world, webhook(one, "more", "https://example.com/")).await.unwrap_err().to_string();
    assert!(refused.contains("the maximum"), "{refused}");
    for (name, url) in [("", "https://example.com/"), ("x", "ftp://example.com/"), ("x\u{7}", "https://example.com/")] {
        assert!(matches!(create(&world, webhook(one, name, url)).await, Err(StoreError::Invalid(_))), "{name:?} {url}");
    }
    world.store.close().await;
}

#[tokio::test]
async fn the_webhooks_of_an_ended_call_are_removed_after_some_minutes() {
    let world = World::start().await;
    let mut receiver = Receiver::start(vec![]).await;
    let (ended, open) = (request(&world).await, request(&world).await);
    for call in [ended, open] {
        create(&world, webhook(call, "a", &receiver.url)).await.unwrap();
    }
    let delivering = Delivering::start(&world.store, options());
    world.records.cancel(ended).await.unwrap();
    receiver.next().await;
    world.until("SELECT count(*) FROM deliveries", 0).await;
    delivering.stop().await;
    world.store.deliveries().purge(&options().retention).await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM webhooks").await, 2, "its last events may not be queued yet");
    world.sql("UPDATE calls SET finished_at = now() - interval '1 hour' WHERE finished_at IS NOT NULL").await;
    world.sql("UPDATE webhooks SET created_at = now() - interval '2 hours'").await;
    world.store.deliveries().purge(&options().retention).await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM webhooks").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM webhook_secrets").await, 1);
    world.store.close().await;
}
