//! Tenants over HTTP: all for the operator, a curator's own, and none for others.

use std::time::Duration;

use rcrt_breadcrumb::{Identity, Profile, Role, Tenancy};
use rcrt_server::AuthMode;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Answer, World, answer, key, note};

async fn operator(world: &World, tenant: Uuid) -> String {
    let (agent, _) = world.agent(tenant, &[Role::Curator]).await;
    let identity =
        Identity { owner_id: tenant, agent_id: agent.id, roles: vec![Role::Curator], profile: Profile::Main };
    key().issue_for_operator(&identity, Duration::from_mins(5)).unwrap()
}

async fn send(world: &World, method: Method, tenant: impl std::fmt::Display, token: &str, body: Value) -> Answer {
    answer(world.request(method.as_str(), &format!("/tenants/{tenant}"), token).json(&body)).await
}

#[tokio::test]
async fn an_operator_creates_renames_and_deletes_tenants() {
    let world = World::start().await;
    let home = world.tenant().await;
    let operator = operator(&world, home).await;
    let id = Uuid::new_v4();
    let path = format!("/tenants/{id}");
    world.get(&path, &operator).await.problem(404, "not_found");
    let made = send(&world, Method::POST, id, &operator, json!({"name": "one"})).await.ok();
    assert_eq!(made.header("cache-control"), "no-store");
    let made = made.json();
    assert_eq!((&made["ok"], &made["created"]), (&json!(true), &json!(true)));
    let again = send(&world, Method::PUT, id, &operator, json!({"name": "uno"})).await.ok().json();
    assert_eq!(again, json!({"ok": true, "created": false}));
    let tenant = world.get(&path, &operator).await.ok().json();
    assert_eq!((&tenant["id"], &tenant["name"]), (&json!(id), &json!("uno")));
    let listed = world.get("/tenants", &operator).await.ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    send(&world, Method::POST, Uuid::new_v4(), &operator, json!({"name": "uno"})).await.violation("name");
    send(&world, Method::POST, Uuid::new_v4(), &operator, json!({"name": " "})).await.violation("name");
    send(&world, Method::PUT, id, &operator, json!({"title": "x"})).await.violation("title");
    send(&world, Method::PUT, "one", &operator, json!({"name": "x"})).await.violation("id");
    // This server has one database.
    send(&world, Method::POST, Uuid::new_v4(), &operator, json!({"name": "two", "cell": "east"}))
        .await
        .violation("cell");

    // Its first agent gets a token with the key in the response.
    let first = &made["first_agent"];
    let ask = json!({"owner_id": id, "agent_id": first["id"], "agent_key": first["agent_key"]});
    let token = world.post("/auth/token", "", ask.clone()).await.ok().json()["token"].as_str().unwrap().to_owned();
    world.create(&token, note("theirs")).await;
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert_eq!(stream.status(), 200);

    send(&world, Method::DELETE, home, &operator, json!({})).await.violation("id");
    send(&world, Method::DELETE, id, &operator, json!({})).await.ok();
    // All requests are refused at once, also with existing tokens.
    world.get("/breadcrumbs", &token).await.problem(401, "unauthorized");
    world.post("/auth/token", "", ask).await.problem(401, "unauthorized");
    while stream.chunk().await.unwrap().is_some() {}
    world.get(&path, &operator).await.problem(404, "not_found");
    send(&world, Method::DELETE, id, &operator, json!({})).await.problem(404, "not_found");
    world.close().await;
}

#[tokio::test]
async fn a_curator_can_only_rename_its_own_tenant() {
    let world = World::start().await;
    let (own, other) = (world.tenant().await, world.tenant().await);
    let (_, curator) = world.agent(own, &[Role::Curator]).await;
    let listed = world.get("/tenants", &curator).await.ok().json();
    assert_eq!(listed.as_array().unwrap().iter().map(|one| &one["id"]).collect::<Vec<_>>(), [&json!(own)]);
    world.get(&format!("/tenants/{own}"), &curator).await.ok();
    let name = Uuid::new_v4().to_string();
    send(&world, Method::PUT, own, &curator, json!({"name": name})).await.ok();
    assert_eq!(world.get(&format!("/tenants/{own}"), &curator).await.ok().json()["name"], json!(name));
    let moved = send(&world, Method::PUT, own, &curator, json!({"name": name, "cell": "east"})).await;
    moved.problem(403, "forbidden");
    for method in [Method::POST, Method::PUT] {
        for id in [other, Uuid::new_v4()] {
            send(&world, method.clone(), id, &curator, json!({"name": "mine"})).await.problem(403, "forbidden");
        }
    }
    send(&world, Method::DELETE, own, &curator, json!({})).await.problem(403, "forbidden");
    send(&world, Method::DELETE, other, &curator, json!({})).await.problem(404, "not_found");
    // The claim in the token requires an agent that is a curator.
    let (agent, _) = world.agent(own, &[Role::Emitter]).await;
    let identity = Identity { owner_id: own, agent_id: agent.id, roles: vec![Role::Curator], profile: Profile::Main };
    let claimed = key().issue_for_operator(&identity, Duration::from_mins(5)).unwrap();
    world.get("/tenants", &claimed).await.problem(403, "forbidden");
    world.close().await;
}

#[tokio::test]
async fn in_open_mode_every_caller_is_an_operator_but_the_default_tenant_stays() {
    let world = World::start_with(AuthMode::Open).await;
    let token = world.post("/auth/token", "", json!({})).await.ok().json();
    let (default, token) = (token["owner_id"].clone(), token["token"].as_str().unwrap().to_owned());
    let id = Uuid::new_v4();
    send(&world, Method::POST, id, &token, json!({"name": "mine"})).await.ok();
    let mine = world.post("/auth/token", "", json!({"owner_id": id})).await.ok().json();
    let mine = mine["token"].as_str().unwrap();
    world.create(mine, note("there")).await;

    let default = default.as_str().unwrap();
    send(&world, Method::DELETE, default, mine, json!({})).await.violation("id");
    send(&world, Method::PUT, default, mine, json!({"name": "other"})).await.violation("name");
    // RCRT's own tenant means that one, and its clients can set its name.
    let rcrt = Uuid::from_u128(1);
    send(&world, Method::PUT, rcrt, &token, json!({"name": "RCRT"})).await.ok();
    let meant = world.get(&format!("/tenants/{rcrt}"), &token).await.ok().json();
    assert_eq!((&meant["id"], &meant["name"]), (&json!(default), &json!("default")));

    send(&world, Method::DELETE, id, &token, json!({})).await.ok();
    world.get("/breadcrumbs", mine).await.problem(401, "unauthorized");
    assert!(world.store.tenant(id).await.unwrap().is_none());
    world.close().await;
}

#[tokio::test]
async fn an_operator_sets_quotas() {
    let world = World::start().await;
    let home = world.tenant().await;
    let operator = operator(&world, home).await;
    let (bounded, name) = (world.tenant().await, Uuid::new_v4().to_string());
    let (_, curator) = world.agent(bounded, &[Role::Curator]).await;
    let (_, emitter) = world.agent(bounded, &[Role::Emitter]).await;
    let body = |quotas: Value| json!({"name": name, "quotas": quotas});
    let path = format!("/tenants/{bounded}");

    send(&world, Method::PUT, bounded, &curator, body(json!({"max_records": 1}))).await.problem(403, "forbidden");
    let too_large = send(&world, Method::PUT, bounded, &operator, body(json!({"max_bytes": 1_u64 << 60}))).await;
    too_large.violation("quotas.max_bytes");
    send(&world, Method::PUT, bounded, &operator, body(json!({"max_record": 1}))).await.problem(400, "invalid");
    send(&world, Method::PUT, bounded, &operator, body(json!({"max_records": 1}))).await.ok();
    world.create(&emitter, note("kept")).await;
    let refused = world.post("/breadcrumbs", &emitter, note("too many")).await.problem(507, "quota_exceeded");
    assert_eq!((&refused["quota"], &refused["limit"], &refused["used"]), (&json!("records"), &json!(1), &json!(1)));
    assert!(refused["detail"].as_str().unwrap().contains("quota of 1 records"), "{refused}");
    let usage = world.get(&path, &curator).await.ok().json()["usage"].clone();
    assert_eq!((&usage["records"], &usage["in_force"]["max_records"]), (&json!(1), &json!(1)), "{usage}");
    assert_eq!((&usage["in_force"]["max_bytes"], &usage["in_force"]["max_requests"]), (&Value::Null, &json!(4096)));
    // A new name leaves the quotas unchanged; new quotas replace them.
    send(&world, Method::PUT, bounded, &curator, json!({"name": Uuid::new_v4().to_string()})).await.ok();
    world.post("/breadcrumbs", &emitter, note("too many")).await.problem(507, "quota_exceeded");
    send(&world, Method::PUT, bounded, &operator, body(json!({"max_records": null}))).await.ok();
    world.create(&emitter, note("room for more")).await;
    world.close().await;
}

/// The series of a deleted tenant stayed until the server was restarted.
#[tokio::test]
async fn metrics_show_existing_tenants_with_a_quota() {
    let world = World::start().await;
    let other = world.beside().await;
    let operator = operator(&world, world.tenant().await).await;
    let tenant = world.tenant().await;
    let (_, emitter) = world.agent(tenant, &[Role::Emitter]).await;
    let quotas = json!({"name": Uuid::new_v4().to_string(), "quotas": {"max_records": 10}});
    send(&world, Method::PUT, tenant, &operator, quotas).await.ok();
    world.create(&emitter, note("first")).await;
    other.create(&emitter, note("second")).await;

    let shown = world.get("/metrics", &operator).await.ok().text;
    assert!(shown.contains("# TYPE rcrt_tenant_records gauge\n"), "{shown}");
    assert!(shown.contains(&format!("\nrcrt_tenant_records{{tenant=\"{tenant}\"}} 0\n")), "{shown}");
    assert!(shown.contains(&format!("\nrcrt_tenant_bytes{{tenant=\"{tenant}\"}} 0\n")), "{shown}");
    let shown = other.get("/metrics", &operator).await.ok().text;
    assert!(shown.contains(&format!("\nrcrt_tenant_records{{tenant=\"{tenant}\"}} 1\n")), "{shown}");
    assert!(!world.get("/metrics", "").await.ok().text.contains("rcrt_tenant_"));

    send(&world, Method::DELETE, tenant, &operator, json!({})).await.ok();
    assert!(!world.get("/metrics", &operator).await.ok().text.contains(&tenant.to_string()));
    // The other server prunes every minute.
    other.store.prune().await.unwrap();
    assert!(!other.get("/metrics", &operator).await.ok().text.contains(&tenant.to_string()));
    other.close().await;
    world.close().await;
}
