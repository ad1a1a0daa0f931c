use breadcrumb::{Profile, Role};
use serde_json::{Value, json};

use crate::harness::{World, answer};

#[tokio::test]
async fn an_agent_gets_a_key_a_token_and_an_end() {
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
async fn an_agent_makes_no_other_that_may_more() {
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
