use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{Identity, Role, Tenancy};
use serde_json::{Value, json};

use rcrt_server::{AuthMode, ServerLimits, StreamOptions};

use crate::{
    harness::{World, answer, note},
    tickets::{brief_stream, ticket},
};

/// The messages of a stream, as sent on the wire.
pub struct Wire {
    response: reqwest::Response,
    text: String,
}

impl Wire {
    pub async fn open(request: reqwest::RequestBuilder) -> Self {
        Self::of(request.send().await.unwrap())
    }

    pub fn of(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next message's id and data; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    message.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
                };
                let found = (field("id:"), serde_json::from_str(&field("data:")).unwrap());
                assert!(!message.contains("event:"), "browsers receive only unnamed events: {message}");
                self.text = rest.to_string();
                return Some(found);
            }
            self.text.push_str(std::str::from_utf8(&self.response.chunk().await.unwrap()?).unwrap());
        }
    }
}

#[tokio::test]
async fn each_change_is_one_numbered_event_and_a_broken_stream_resumes() {
    let world = World::start().await;
    let token = world.token(&[Role::Curator]).await;
    let mut wire = Wire::open(world.request("GET", "/events/stream", &token)).await;
    let (start, hello) = wire.next().await.unwrap();
    assert_eq!(hello["type"], "ping");
    assert!(hello["ts"].as_str().unwrap().ends_with('Z'), "{hello}");
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
        // A browser repeats its old query: the header has precedence.
        world
            .request("GET", &format!("/events/stream?last_event_id={start}"), &token)
            .header("Last-Event-ID", &created),
        // It cannot send an Authorization header.
        world.request(
            "GET",
            &format!("/events/stream?last_event_id={created}&ticket={}", ticket(&world, &token).await),
            "",
        ),
    ] {
        let mut wire = Wire::open(resumed).await;
        let (start, hello) = wire.next().await.unwrap();
        assert_eq!((&start, &hello["type"]), (&created, &json!("ping")));
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
async fn a_stream_closes_when_its_token_expires() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, _) = world.agent(tenant, &[Role::Subscriber]).await;
    let (_, mut wire) = brief_stream(&world, tenant, agent.id, false).await;
    assert!(wire.next().await.is_some());
    assert!(wire.next().await.is_none());
    world.close().await;
}

#[tokio::test]
async fn events_of_other_tenants_are_not_sent() {
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
    let patient = ServerLimits { write_time: Duration::from_hours(1), ..ServerLimits::default() };
    let world = World::bounded(AuthMode::Keys, patient).await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &Role::ALL).await;
    let mut wire = Wire::open(world.request("GET", "/events/stream", &token)).await;
    wire.next().await.unwrap();
    // 32 MB: far more than the sockets can buffer.
    let store = world.store.acting_as(Identity {
        owner_id: tenant,
        agent_id: agent.id,
        roles: Role::ALL.to_vec(),
        profile: rcrt_breadcrumb::Profile::Main,
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

/// The id of the next event's record.
async fn next_record(wire: &mut Wire) -> String {
    loop {
        let (_, message) = wire.next().await.unwrap();
        if message["type"] != "ping" {
            return message["breadcrumb_id"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned();
        }
    }
}

#[tokio::test]
async fn a_stream_has_the_events_that_selectors_and_filters_match() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &[Role::Subscriber]).await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, colleague) = world.agent(tenant, &[Role::Subscriber]).await;
    let selector = world.post("/subscriptions/selectors", &token, json!({"any_tags": ["a", "b"]})).await.ok().json();
    assert_eq!((&selector["agent_id"], &selector["owner_id"]), (&json!(agent.id), &json!(tenant)));
    let open = async |query: &str, token: &str| {
        Wire::open(world.request("GET", &format!("/events/stream{query}"), token)).await
    };
    let own = format!("?agent_id={}", agent.id);
    let conditions = r#"?filters={"context_match":[{"path":"$.text","op":"gte","value":"2"}],"owner_id":null}"#;
    let by_query = "?tag=note&any_tags=b&schema_name=note.v1&filters={}";
    let cases: [(&str, &str, &[usize]); 8] = [
        ("", &token, &[0, 1]),
        (&own, &token, &[0, 1]),
        // The stream of that agent.
        (&own, &curator, &[0, 1]),
        ("", &curator, &[0, 1, 2]),
        ("?all=true", &token, &[0, 1, 2]),
        (conditions, &token, &[1]),
        (conditions, &curator, &[1, 2]),
        (by_query, &token, &[1]),
    ];
    let mut wires = Vec::new();
    for (query, token, _) in cases {
        wires.push(open(query, token).await);
    }
    let mut ids = Vec::new();
    for (tags, text) in [(["note", "a"], "1"), (["note", "b"], "2"), (["note", "c"], "3"), (["note", "end"], "9")] {
        let record = json!({"title": "x", "tags": tags, "schema_name": "note.v1", "context": {"text": text}});
        ids.push(world.create(&curator, record).await.to_string());
        if tags[1] == "c" {
            // Changed selectors apply to open streams.
            let path = format!("/subscriptions/selectors/{}", selector["id"].as_str().unwrap());
            // The last of the first three may be read before the change or not; all later ones are
            // read after it.
            for ((_, _, expected), wire) in cases.iter().zip(&mut wires) {
                for index in *expected {
                    assert_eq!(next_record(wire).await, ids[*index]);
                }
            }
            answer(world.request("PUT", &path, &token).json(&json!({"all_tags": ["end"]}))).await.ok();
        }
    }
    for ((query, ..), wire) in cases.iter().zip(&mut wires) {
        if !query.contains("any_tags") {
            assert_eq!(next_record(wire).await, ids[3], "{query}");
        }
    }
    let refused = world.get(&format!("/events/stream{own}"), &colleague).await;
    assert!(refused.problem(403, "forbidden")["detail"].as_str().unwrap().contains("agent_id"));
    let other_tenant = world.token(&[Role::Curator]).await;
    world.get(&format!("/events/stream{own}"), &other_tenant).await.problem(404, "not_found");
    world.close().await;
}

#[tokio::test]
async fn the_parameters_of_a_stream_are_validated() {
    let world = World::start().await;
    let token = world.token(&[Role::Subscriber]).await;
    for (query, field) in [
        ("filters=x", "filters"),
        ("filters=[]", "filters"),
        (r#"filters={"any_tags":["a"]}{}"#, "filters"),
        (r#"filters={"any_tags":"a"}"#, "filters.any_tags"),
        (r#"filters={"any_tags":[""]}"#, "filters.any_tags[0]"),
        (r#"filters={"sensitivity_in":["low"]}"#, "filters.sensitivity_in"),
        (r#"filters={"owner_id":"00000000-0000-0000-0000-000000000009"}"#, "filters.owner_id"),
        (r#"filters={"context_match":[{"path":"$.a","op":"like","value":1}]}"#, "filters.context_match[0].op"),
        (r#"filters={"context_match":[{"path":"a","op":"eq","value":1}]}"#, "filters.context_match[0].path"),
        (r#"filters={"context_match":[{"path":"$.a","op":"lte","value":null}]}"#, "filters.context_match[0].value"),
        ("any_tags=", "any_tags[0]"),
        ("agent_id=me", "agent_id"),
        ("all=yes", "all"),
        ("last_event_id=-1", "last_event_id"),
        ("since=1", "since"),
    ] {
        world.get(&format!("/events/stream?{query}"), &token).await.violation(field);
    }
    for (body, field) in [
        (json!({"any_tags": "a"}), "any_tags"),
        (json!({"tags": ["a"]}), "tags"),
        (json!({"context_match": [{"path": "$.a", "op": "matches", "value": 1}]}), "context_match[0].op"),
        (json!({"context_match": [{"path": "$.a", "op": "gt", "value": true}]}), "context_match[0].value"),
        // Against a record of 6,000 numbers this took 11 s and blocked all other requests.
        (many_values(), "context_match[0].value"),
        (json!({"context_match": [{"path": "$.a", "op": "eq", "value": 1, "not": true}]}), "context_match[0].not"),
    ] {
        world.post("/subscriptions/selectors", &token, body).await.violation(field);
    }
    world.close().await;
}

#[tokio::test]
async fn a_ping_has_the_number_of_the_last_examined_event() {
    let streams = StreamOptions { ping_every: Duration::from_millis(50), ..StreamOptions::default() };
    let world = World::start_streaming(AuthMode::Keys, streams).await;
    let token = world.token(&[Role::Curator]).await;
    let mut wire = Wire::open(world.request("GET", "/events/stream?any_tags=never", &token)).await;
    let (start, _) = wire.next().await.unwrap();
    let mut all = Wire::open(world.request("GET", "/events/stream", &token)).await;
    let mut latest = String::new();
    for number in 0..5 {
        let id = world.create(&token, note(&number.to_string())).await;
        loop {
            let (number, message) = all.next().await.unwrap();
            if message["breadcrumb_id"] == json!(id) {
                latest = number;
                break;
            }
        }
    }
    assert_ne!(start, latest);
    let mut seen = start;
    while seen != latest {
        let (id, message) = wire.next().await.unwrap();
        assert_eq!(message["type"], "ping");
        if !id.is_empty() {
            assert!(id.parse::<i64>().unwrap() > seen.parse().unwrap(), "{id} after {seen}");
            seen = id;
        }
    }
    // From there no event is read twice.
    let mut resumed =
        Wire::open(world.request("GET", "/events/stream?tag=note", &token).header("Last-Event-ID", seen)).await;
    let id = world.create(&token, note("new")).await;
    assert_eq!(next_record(&mut resumed).await, id.to_string());
    world.close().await;
}

#[tokio::test]
async fn a_subscriber_that_missed_deleted_events_is_notified() {
    let world = World::start().await;
    let token = world.token(&[Role::Curator]).await;
    let first = world.create(&token, note("first")).await;
    let mut wire = Wire::open(world.request("GET", "/events/stream?last_event_id=0", &token)).await;
    wire.next().await.unwrap();
    let (seen, event) = wire.next().await.unwrap();
    assert_eq!(event["breadcrumb_id"], json!(first));
    drop(wire);
    let away = Wire::open(world.request("GET", "/events/stream?last_event_id=0", &token));
    let (mut other, _) = tokio::join!(away, world.create(&token, note("lost")));
    let mut lost = 0;
    for _ in 0..3 {
        // The ping, the first event, and the one that will be deleted.
        lost = other.next().await.unwrap().0.parse::<i64>().unwrap();
    }
    assert!(lost > seen.parse().unwrap());
    drop(other);
    world.forget_events().await;
    let kept = world.create(&token, note("kept")).await;

    let mut wire =
        Wire::open(world.request("GET", "/events/stream?tag=note", &token).header("Last-Event-ID", &seen)).await;
    assert_eq!(wire.next().await.unwrap().1["type"], "ping");
    let (id, missed) = wire.next().await.unwrap();
    assert_eq!(missed, json!({"type": "missed", "after": seen.parse::<i64>().unwrap(), "first": lost + 1}));
    assert_eq!(id, lost.to_string());
    assert_eq!(next_record(&mut wire).await, kept.to_string());
    drop(wire);
    // Only one notice: after its number nothing is missing.
    let mut wire = Wire::open(world.request("GET", "/events/stream", &token).header("Last-Event-ID", id)).await;
    assert_eq!(next_record(&mut wire).await, kept.to_string());
    world.close().await;
}

#[tokio::test]
async fn streams_are_limited_per_agent_and_per_tenant() {
    let streams = StreamOptions { most_per_agent: 2, most_per_tenant: 3, ..StreamOptions::default() };
    let world = World::start_streaming(AuthMode::Keys, streams).await;
    let tenant = world.tenant().await;
    let (_, one) = world.agent(tenant, &[Role::Subscriber]).await;
    let (_, two) = world.agent(tenant, &[Role::Subscriber]).await;
    let stranger = world.token(&[Role::Subscriber]).await;
    let open = async |token: &str| {
        let mut wire = Wire::open(world.request("GET", "/events/stream", token)).await;
        wire.next().await.unwrap();
        wire
    };
    let refused = async |token: &str, whose: &str| {
        let answer = world.get("/events/stream", token).await;
        assert!(answer.header("retry-after").parse::<u32>().unwrap() > 0);
        let detail = answer.problem(429, "too_many_streams")["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(whose), "{detail}");
    };
    let first = open(&one).await;
    let _second = open(&one).await;
    refused(&one, "agent").await;
    let _third = open(&two).await;
    refused(&two, "tenant").await;
    let _theirs = open(&stranger).await;
    // The permit is free after the stream is closed, which the server sees at its next write.
    drop(first);
    world.create(&world.agent(tenant, &[Role::Emitter]).await.1, note("wakes")).await;
    while world.request("GET", "/events/stream", &two).send().await.unwrap().status() == 429 {
        world.create(&world.agent(tenant, &[Role::Emitter]).await.1, note("wakes")).await;
    }
    world.close().await;
}

#[tokio::test]
async fn new_as_updated_sends_new_records_as_rcrt_does() {
    let streams = StreamOptions { new_as_updated: true, ..StreamOptions::default() };
    let world = World::start_streaming(AuthMode::Keys, streams).await;
    let token = world.token(&[Role::Curator]).await;
    let mut theirs = Wire::open(world.request("GET", "/events/stream", &token)).await;
    let mut ours = Wire::open(world.request("GET", "/events/stream?all=true", &token)).await;
    for wire in [&mut theirs, &mut ours] {
        wire.next().await.unwrap();
    }
    world.create(&token, note("new")).await;
    assert_eq!(theirs.next().await.unwrap().1["type"], "breadcrumb.updated");
    assert_eq!(ours.next().await.unwrap().1["type"], "breadcrumb.created");
    world.close().await;
}

fn many_values() -> serde_json::Value {
    json!({"context_match": [{"path": "$.a", "op": "contains_any", "value": vec![0; 30_000]}]})
}
