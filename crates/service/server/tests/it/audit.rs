//! The egress log over HTTP.

use std::sync::LazyLock;

use chrono::{Days, NaiveDate, Utc};
use rcrt_breadcrumb::Role;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::World;

/// Recent enough that the server does not delete the entries while it runs.
static YESTERDAY: LazyLock<NaiveDate> = LazyLock::new(|| Utc::now().date_naive() - Days::new(1));

fn at(minute: u32) -> String {
    format!("{}T23:{minute:02}:00Z", *YESTERDAY)
}

fn entry(host: &str, minute: u32) -> Value {
    json!({"at": at(minute), "agent_id": Uuid::nil(), "tool": "weather", "tool_id": null, "call": Uuid::nil(),
        "host": host, "port": 443, "method": "GET", "outcome": "answered", "reason": null, "status": 200, "bytes_out": 0,
        "bytes_in": 10, "duration_ms": 5})
}

fn hosts(page: &Value) -> Vec<&str> {
    page["entries"].as_array().unwrap().iter().map(|entry| entry["host"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_runner_writes_and_a_curator_reads_newest_first_page_by_page() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let mut refused = entry("denied.example", 3);
    (refused["outcome"], refused["status"], refused["reason"], refused["tool"]) =
        (json!("refused"), Value::Null, json!("the operator denies it"), json!("other"));
    let entries = json!([entry("a.example", 1), entry("b.example", 2), refused]);
    world.post("/audit/egress", &runner, json!({"entries": entries})).await.ok();
    let all = world.get("/audit/egress", &curator).await.ok().json();
    assert_eq!(hosts(&all), ["denied.example", "b.example", "a.example"]);
    assert!(all.get("next").is_none());
    let mut newest = all["entries"][0].clone();
    newest.as_object_mut().unwrap().remove("id").unwrap();
    assert_eq!(newest, entries[2]);

    let ask = async |query: &str| world.get(&format!("/audit/egress?{query}"), &curator).await.ok().json();
    let first = ask("limit=2").await;
    assert_eq!(hosts(&first), ["denied.example", "b.example"]);
    assert_eq!(hosts(&ask(&format!("limit=2&before={}", first["next"])).await), ["a.example"]);
    let between = format!("since={}&until={}", at(2), at(3));
    for (query, found) in [
        ("tool=other", vec!["denied.example"]),
        ("outcome=refused", vec!["denied.example"]),
        ("host=b.example", vec!["b.example"]),
        (between.as_str(), vec!["b.example"]),
        (
            "agent_id=00000000-0000-0000-0000-000000000000&call=00000000-0000-0000-0000-000000000000&tool=weather",
            vec!["b.example", "a.example"],
        ),
        ("host=c.example", vec![]),
    ] {
        assert_eq!(hosts(&ask(query).await), found, "{query}");
    }
    let other = world.token(&[Role::Curator]).await;
    assert!(hosts(&world.get("/audit/egress", &other).await.ok().json()).is_empty());
    world.close().await;
}

#[tokio::test]
async fn invalid_fields_are_named() {
    let world = World::start().await;
    let token = world.token(&[Role::Curator]).await;
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("since=yesterday", "since"),
        ("outcome=good", "outcome"),
        ("agent_id=x", "agent_id"),
        ("page=2", "page"),
    ] {
        world.get(&format!("/audit/egress?{query}"), &token).await.violation(field);
    }
    world.post("/audit/egress", &token, json!({"entries": []})).await.violation("entries");
    let (mut no_status, mut no_host) = (entry("a.example", 1), entry("", 1));
    no_status["status"] = Value::Null;
    no_host["host"] = json!("");
    world
        .post("/audit/egress", &token, json!({"entries": [entry("a.example", 1), no_status]}))
        .await
        .violation("entries[1].status");
    world.post("/audit/egress", &token, json!({"entries": [no_host]})).await.violation("entries[0].host");
    let many: Vec<Value> = (0..1001).map(|_| entry("a.example", 1)).collect();
    world.post("/audit/egress", &token, json!({"entries": many})).await.violation("entries");
    world.close().await;
}
