use breadcrumb::Role;
use serde_json::json;

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
