use std::time::Duration;

use rcrt_breadcrumb::{Identity, Profile, Role};
use serde_json::{Value, json};

use crate::harness::{World, answer, key, note};

#[tokio::test]
async fn an_agent_is_created_gets_a_token_and_is_deleted() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let made = world.post("/agents", &curator, json!({"name": "helper", "roles": ["emitter", "subscriber"]})).await;
    assert_eq!((made.status.as_u16(), made.header("cache-control")), (201, "no-store"));
    let made = made.json();
    let (id, key) = (made["id"].as_str().unwrap(), made["agent_key"].as_str().unwrap());
    world.post("/agents", &curator, json!({"name": "helper", "roles": ["emitter"]})).await.violation("name");

    let listed = world.get("/agents", &curator).await.ok();
    assert!(listed.text.contains(id) && !listed.text.contains(key));
    assert_eq!(world.get(&format!("/agents/{id}"), &curator).await.ok().json()["name"], "helper");

    let ask = json!({"owner_id": tenant, "agent_id": id, "agent_key": key});
    let token = world.post("/auth/token", "", ask.clone()).await.ok().json()["token"].as_str().unwrap().to_owned();
    world.get("/breadcrumbs", &token).await.ok();
    answer(world.request("DELETE", &format!("/agents/{id}"), &curator)).await.ok();
    world.get("/breadcrumbs", &token).await.problem(401, "unauthorized");
    world.post("/auth/token", "", ask).await.problem(401, "unauthorized");
    world.close().await;
}

#[tokio::test]
async fn a_tenant_keeps_a_curator() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (own, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, other) = world.agent(tenant, &[Role::Curator]).await;
    let path = format!("/agents/{}", own.id);
    answer(world.request("DELETE", &path, &curator)).await.problem(403, "forbidden");
    world.post(&path, &curator, json!({"roles": ["emitter"]})).await.problem(403, "forbidden");
    world.post(&path, &curator, json!({"roles": ["emitter", "curator"]})).await.ok();
    world.post(&path, &other, json!({"roles": ["emitter"]})).await.ok();
    answer(world.request("DELETE", &path, &other)).await.ok();
    world.close().await;
}

#[tokio::test]
async fn an_agent_cannot_create_one_with_more_rights() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, main) = world.agent(tenant, &[Role::Curator]).await;
    let (_, subagent) = world.agent_of(tenant, &[Role::Curator], Profile::Subagent).await;
    let ask = |token: &str, name: &str, profile: Value| {
        let body = json!({"name": name, "roles": ["emitter"], "profile": profile});
        let (world, token) = (&world, token.to_owned());
        async move { world.post("/agents", &token, body).await }
    };
    for profile in Profile::ALL {
        let made = ask(&main, profile.as_str(), json!(profile)).await.ok().json();
        assert_eq!(made["profile"], profile.as_str());
        let path = format!("/agents/{}", made["id"].as_str().unwrap());
        assert_eq!(world.get(&path, &main).await.ok().json()["profile"], profile.as_str());
        if profile != Profile::Subagent {
            ask(&subagent, "other", json!(profile)).await.problem(403, "forbidden");
        }
    }
    ask(&subagent, "mine", json!("subagent")).await.ok();
    ask(&main, "wrong", json!("king")).await.violation("profile");
    let plain = world.post("/agents", &main, json!({"name": "plain", "roles": ["emitter"]})).await.ok().json();
    assert_eq!(plain["profile"], "main");
    world.post("/agents", &subagent, json!({"name": "free", "roles": ["emitter"]})).await.problem(403, "forbidden");
    world.close().await;
}

#[tokio::test]
async fn an_agent_is_registered_with_a_chosen_id_and_changed() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (head, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (own, emitter) = world.agent(tenant, &[Role::Emitter]).await;
    let id = uuid::Uuid::new_v4();
    let put = async |id: uuid::Uuid, token: &str, body: Value| world.post(&format!("/agents/{id}"), token, body).await;
    let made = put(id, &curator, json!({"roles": ["emitter", "subscriber"]})).await.ok();
    assert_eq!(made.header("cache-control"), "no-store");
    let made = made.json();
    assert_eq!((&made["ok"], &made["created"]), (&json!(true), &json!(true)));
    let agent = world.get(&format!("/agents/{id}"), &curator).await.ok().json();
    assert_eq!((&agent["name"], &agent["roles"]), (&json!(id), &json!(["emitter", "subscriber"])));

    let ask = json!({"owner_id": tenant, "agent_id": id, "agent_key": made["agent_key"]});
    let token = world.post("/auth/token", "", ask.clone()).await.ok().json()["token"].as_str().unwrap().to_owned();
    world.get("/events/latest", &token).await.ok();
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    // Repeating the request changes the roles, also for existing tokens and streams; the key stays.
    let changed = put(id, &curator, json!({"roles": ["emitter"], "name": "helper"})).await.ok().json();
    assert_eq!(changed, json!({"ok": true, "created": false}));
    world.get("/events/latest", &token).await.problem(403, "forbidden");
    while stream.chunk().await.unwrap().is_some() {}
    world.get("/breadcrumbs", &token).await.ok();
    assert_eq!(world.post("/auth/token", "", ask).await.ok().json()["roles"], json!(["emitter"]));
    assert_eq!(world.get(&format!("/agents/{id}"), &curator).await.ok().json()["name"], "helper");

    // A restricted profile applies to existing tokens too.
    let tags = async |token: &str| -> Value {
        let record = world.create(token, note("x")).await;
        world.get(&format!("/breadcrumbs/{record}"), &curator).await.ok().json()["tags"].clone()
    };
    let scheduled =
        Identity { owner_id: tenant, agent_id: id, roles: vec![Role::Emitter], profile: Profile::Scheduled };
    let scheduled = key().issue(&scheduled, Duration::from_mins(5)).unwrap();
    assert_eq!(tags(&token).await, json!(["note"]));
    put(id, &curator, json!({"roles": ["emitter"], "profile": "subagent"})).await.ok();
    assert_eq!(tags(&token).await, json!(["note", "profile:subagent"]));
    world.get("/breadcrumbs", &scheduled).await.problem(401, "unauthorized");
    put(id, &curator, json!({"roles": ["emitter"]})).await.ok();
    assert_eq!(world.get(&format!("/agents/{id}"), &curator).await.ok().json()["profile"], "subagent");
    put(id, &curator, json!({"roles": ["emitter"], "profile": "main"})).await.ok();
    assert_eq!(tags(&token).await, json!(["note"]));
    put(head.id, &curator, json!({"roles": ["curator"], "profile": "subagent"})).await.problem(403, "forbidden");

    // No agent can give itself roles.
    put(own.id, &emitter, json!({"roles": ["curator"]})).await.problem(403, "forbidden");
    // Invalid input.
    put(id, &curator, json!({"roles": []})).await.violation("roles");
    put(id, &curator, json!({"roles": ["king"]})).await.violation("roles[0]");
    put(id, &curator, json!({"roles": ["emitter"], "name": ""})).await.violation("name");
    put(id, &curator, json!({"roles": ["emitter"], "name": own.name})).await.violation("name");
    put(id, &curator, json!({"roles": ["emitter"], "key": "x"})).await.violation("key");
    world.post("/agents/me", &curator, json!({"roles": ["emitter"]})).await.violation("id");
    let (theirs, _) = world.agent(world.tenant().await, &[Role::Emitter]).await;
    put(theirs.id, &curator, json!({"roles": ["emitter"]})).await.violation("id");
    answer(world.request("DELETE", &format!("/agents/{id}"), &curator)).await.ok();
    put(id, &curator, json!({"roles": ["emitter"]})).await.violation("id");
    // An agent can only create and change agents of its own profile.
    let (_, subagent) = world.agent_of(tenant, &[Role::Curator], Profile::Subagent).await;
    put(own.id, &subagent, json!({"roles": ["curator"]})).await.problem(403, "forbidden");
    put(uuid::Uuid::new_v4(), &subagent, json!({"roles": ["emitter"]})).await.problem(403, "forbidden");
    let their = uuid::Uuid::new_v4();
    put(their, &subagent, json!({"roles": ["emitter"], "profile": "subagent"})).await.ok();
    put(their, &subagent, json!({"roles": ["emitter"], "profile": "main"})).await.problem(403, "forbidden");
    world.close().await;
}
