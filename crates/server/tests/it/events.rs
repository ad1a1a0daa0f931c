use std::time::Duration;

use breadcrumb::{Identity, Role, Tenancy};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::harness::{World, answer, key, note};

/// The messages of a stream, as they stand on the wire.
struct Wire {
    response: reqwest::Response,
    text: String,
}

impl Wire {
    async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next message's id and data; `None` at the end of the stream.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    message.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
                };
                let found = (field("id:"), serde_json::from_str(&field("data:")).unwrap());
                assert!(!message.contains("event:"), "browsers hear only unnamed events: {message}");
                self.text = rest.to_string();
                return Some(found);
            }
            self.text.push_str(std::str::from_utf8(&self.response.chunk().await.unwrap()?).unwrap());
        }
    }
}

#[tokio::test]
async fn each_change_is_one_numbered_event_and_a_cut_stream_is_taken_up_again() {
    let world = World::start().await;
    let token = world.token(&[Role::Curator]).await;
    let mut wire = Wire::open(world.request("GET", "/events/stream", &token)).await;
    let (start, hello) = wire.next().await.unwrap();
    assert_eq!(hello, json!({"type": "ping"}));
    assert_eq!(world.get("/events/latest", &token).await.ok().json()["number"], start.parse::<i64>().unwrap());

    let id = world.create(&token, note("a")).await;
    let (created, event) = wire.next().await.unwrap();
    assert_eq!((&event["type"], &event["breadcrumb_id"]), (&json!("breadcrumb.created"), &json!(id)));
    assert_eq!((&event["tags"], &event["schema_name"]), (&json!(["note"]), &json!("note.v1")));
    assert_eq!((&event["version"], &event["context"]), (&json!(1), &json!({"text": "a"})));
    assert!(event["owner_id"].is_string() && event["updated_at"].is_string());
    drop(wire);

    let patch = world.request("PATCH", &format!("/breadcrumbs/{id}"), &token).header("If-Match", "1");
    answer(patch.json(&json!({"title": "b"}))).await.ok();
    answer(world.request("DELETE", &format!("/breadcrumbs/{id}"), &token)).await.ok();
    for resumed in [
        world.request("GET", "/events/stream", &token).header("Last-Event-ID", &created),
        world.request("GET", &format!("/events/stream?last_event_id={created}"), &token),
        // A browser repeats its old query: the header goes before it.
        world
            .request("GET", &format!("/events/stream?last_event_id={start}"), &token)
            .header("Last-Event-ID", &created),
        // And cannot send an Authorization header.
        world.request("GET", &format!("/events/stream?last_event_id={created}&token={token}"), ""),
    ] {
        let mut wire = Wire::open(resumed).await;
        assert_eq!(wire.next().await.unwrap(), (created.clone(), json!({"type": "ping"})));
        let (updated, event) = wire.next().await.unwrap();
        assert_eq!((&event["type"], &event["version"]), (&json!("breadcrumb.updated"), &json!(2)));
        let (deleted, event) = wire.next().await.unwrap();
        assert_eq!(event["type"], "breadcrumb.deleted");
        let numbers: Vec<i64> = [&created, &updated, &deleted].map(|number| number.parse().unwrap()).to_vec();
        assert!(numbers.is_sorted() && numbers[0] < numbers[2], "{numbers:?}");
    }
    world.close().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, _) = world.agent(tenant, &[Role::Subscriber]).await;
    let identity = Identity {
        owner_id: tenant,
        agent_id: agent.id,
        roles: vec![Role::Subscriber],
        profile: breadcrumb::Profile::Main,
    };
    let token = key().issue(&identity, Duration::from_secs(2)).unwrap();
    let mut wire = Wire::open(world.request("GET", "/events/stream", &token)).await;
    assert!(wire.next().await.is_some());
    assert!(wire.next().await.is_none());
    world.close().await;
}

#[tokio::test]
async fn other_tenants_events_are_not_heard() {
    let world = World::start().await;
    let (mine, theirs) = (world.token(&Role::ALL).await, world.token(&Role::ALL).await);
    let mut wire = Wire::open(world.request("GET", "/events/stream", &mine)).await;
    wire.next().await.unwrap();
    world.create(&theirs, note("theirs")).await;
    world.create(&mine, note("mine")).await;
    assert_eq!(wire.next().await.unwrap().1["context"], json!({"text": "mine"}));
    world.close().await;
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_gets_everything_later() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &Role::ALL).await;
    let mut wire = Wire::open(world.request("GET", "/events/stream", &token)).await;
    wire.next().await.unwrap();
    // 32 MB: far more than the sockets hold.
    let store = world.store.acting_as(Identity {
        owner_id: tenant,
        agent_id: agent.id,
        roles: Role::ALL.to_vec(),
        profile: breadcrumb::Profile::Main,
    });
    let text = "x".repeat(1024 * 1024);
    futures::stream::iter(0..32)
        .for_each_concurrent(4, |number| {
            let record = json!({"title": "big", "context": {"number": number, "text": text}});
            let store = store.clone();
            async move {
                store.create(serde_json::from_value(record).unwrap(), None).await.unwrap();
            }
        })
        .await;
    let mut seen: Vec<i64> = Vec::new();
    while seen.len() < 32 {
        seen.push(wire.next().await.unwrap().1["context"]["number"].as_i64().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..32).collect::<Vec<_>>());
    world.close().await;
}
