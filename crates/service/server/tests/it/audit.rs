//! The audit log and the egress log over HTTP.

use std::sync::LazyLock;

use chrono::{Days, NaiveDate, Utc};
use rcrt_breadcrumb::Role;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{World, answer};

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

/// The lines of the log: action, agent, subject and reason.
async fn lines(world: &World, curator: &str, query: &str) -> Vec<(String, Value, Value, Value)> {
    let page = world.get(&format!("/audit?{query}"), curator).await.ok().json();
    let entries = page["entries"].as_array().unwrap().iter();
    let text = |entry: &Value| entry["action"].as_str().unwrap().to_owned();
    entries
        .map(|entry| (text(entry), entry["agent_id"].clone(), entry["subject"].clone(), entry["reason"].clone()))
        .collect()
}

#[tokio::test]
async fn the_audit_log_has_agents_tools_grants_and_secrets_with_who_did_it() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (me, curator) = world.agent(tenant, &[Role::Curator]).await;
    let by = json!(me.id);
    let bot = world.post("/agents", &curator, json!({"name": "bot", "roles": ["emitter"]})).await.ok().json();
    let path = format!("/agents/{}", bot["id"].as_str().unwrap());
    let change = json!({"roles": ["caller"], "tools": {"names": ["echo"]}});
    world.post(&path, &curator, change).await.ok();
    world.post(&format!("{path}/rotate-key"), &curator, json!({})).await.ok();
    answer(world.request("DELETE", &path, &curator)).await.ok();
    let agents = lines(&world, &curator, &format!("action=agent&subject={}", bot["id"].as_str().unwrap())).await;
    let line = |action: &str, reason: Value| (action.to_owned(), by.clone(), bot["id"].clone(), reason);
    assert_eq!(
        agents,
        [
            line("agent.deleted", Value::Null),
            line("agent.key_rotated", Value::Null),
            line("agent.changed", json!("roles: emitter → caller; tools: all → names echo")),
            line("agent.created", json!("roles: emitter; profile: main; tools: all")),
        ]
    );

    let tool = json!({"title": "Tool", "schema_name": "tool.code.v1", "context": {"name": "weather"}});
    let tool = world.create(&curator, tool).await;
    let path = format!("/breadcrumbs/{tool}");
    let changed = world.request("PATCH", &path, &curator).header("If-Match", "1");
    answer(changed.json(&json!({"context": {"name": "weather", "n": 1}}))).await.ok();
    world.create(&curator, crate::harness::note("no tool")).await;
    answer(world.request("DELETE", &path, &curator)).await.ok();
    let tools = lines(&world, &curator, "action=tool").await;
    let line = |action: &str, reason: Value| (action.to_owned(), by.clone(), json!(tool), reason);
    assert_eq!(
        tools,
        [
            line("tool.deleted", Value::Null),
            line("tool.changed", json!("version 2")),
            line("tool.created", Value::Null)
        ]
    );

    let note = world.create(&curator, crate::harness::note("shared")).await;
    let grant = json!({"breadcrumb_id": note, "grantee_agent_id": me.id, "action": "read_full"});
    world.post("/acl/grant", &curator, grant).await.ok();
    let secret = json!({"name": "KEY", "value": "a long value"});
    let secret = world.post("/secrets", &curator, secret).await.ok().json()["id"].clone();
    let path = format!("/secrets/{}/decrypt", secret.as_str().unwrap());
    world.post(&path, &curator, json!({"reason": "a look"})).await.ok();
    let decrypted = lines(&world, &curator, "action=secret.decrypted").await;
    assert_eq!(decrypted, [("secret.decrypted".into(), by.clone(), secret, json!("a look"))]);
    let granted = lines(&world, &curator, "action=acl").await;
    assert_eq!((&*granted[0].0, &granted[0].2), ("acl.granted", &json!(note)));
    world.close().await;
}

#[tokio::test]
async fn the_group_of_an_action_finds_all_of_its_entries() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    world.get("/breadcrumbs", &token).await.ok();
    world.post("/auth/revoke", &curator, json!({"token": token})).await.ok();
    world.post("/auth/revoke", &curator, json!({"all": true, "agent_id": agent.id})).await.ok();
    let secret = json!({"secret": "a long enough secret"});
    world.post(&format!("/agents/{}/secret", agent.id), &curator, secret).await.ok();
    let actions = async |query: &str| -> Vec<String> {
        lines(&world, &curator, query).await.into_iter().map(|(action, ..)| action).collect()
    };
    assert_eq!(actions("action=token").await, ["token.all_revoked", "token.revoked"]);
    assert_eq!(actions("action=token.revoked").await, ["token.revoked"]);
    assert_eq!(actions("action=webhook").await, ["webhook.secret_set"]);
    let all = actions("limit=1000").await;
    assert!(all.iter().all(|action| rcrt_breadcrumb::AUDIT_ACTIONS.contains(&action.as_str())), "{all:?}");
    world.close().await;
}

#[tokio::test]
async fn the_audit_log_is_filtered_and_read_page_by_page_by_curators() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (me, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (other, second) = world.agent(tenant, &[Role::Curator]).await;
    for n in 0..5 {
        let by = if n < 3 { &curator } else { &second };
        world.post("/agents", by, json!({"name": format!("agent {n}"), "roles": ["caller"]})).await.ok();
    }
    let names = async |query: &str| -> Vec<String> {
        let page = world.get(&format!("/audit?action=agent.created&{query}"), &curator).await.ok().json();
        let entries = page["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["subject_name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&format!("agent_id={}", me.id)).await, ["agent 2", "agent 1", "agent 0"]);
    assert_eq!(names(&format!("agent_id={}", other.id)).await, ["agent 4", "agent 3"]);
    let first = world.get("/audit?limit=2", &curator).await.ok().json();
    assert_eq!(first["entries"].as_array().unwrap().len(), 2);
    let rest = names(&format!("before={}", first["next"])).await;
    assert_eq!(rest[..3], ["agent 2", "agent 1", "agent 0"]);
    assert_eq!(names("since=2999-01-01T00:00:00Z").await.len(), 0);
    assert_eq!(names("until=2000-01-01T00:00:00Z").await.len(), 0);
    let wrong = world.get("/audit?action=agen", &curator).await.violation("action");
    assert!(wrong.ends_with("agent, token, acl, secret, tool, webhook; did you mean agent?"), "{wrong}");
    for (query, field) in [("limit=0", "limit"), ("agent_id=x", "agent_id"), ("since=soon", "since"), ("x=1", "x")] {
        world.get(&format!("/audit?{query}"), &curator).await.violation(field);
    }
    for role in [Role::Emitter, Role::Subscriber, Role::Runner, Role::Caller] {
        let (_, token) = world.agent(tenant, &[role]).await;
        world.get("/audit", &token).await.problem(403, "forbidden");
    }
    let elsewhere = world.token(&[Role::Curator]).await;
    let theirs = world.get("/audit", &elsewhere).await.ok().json();
    assert!(theirs["entries"].as_array().unwrap().iter().all(|entry| entry["agent_id"] != json!(me.id)));
    world.close().await;
}
