use breadcrumb::Role;
use serde_json::json;

use crate::harness::{World, answer};

#[tokio::test]
async fn a_secret_is_kept_rotated_decrypted_and_deleted() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let made = world.post("/secrets", &curator, json!({"name": "API_KEY", "value": "first"})).await;
    assert_eq!((made.status.as_u16(), &made.json()["version"]), (201, &json!(1)));
    let id = made.json()["id"].as_str().unwrap().to_owned();
    world.post("/secrets", &curator, json!({"name": "API_KEY", "value": "other"})).await.violation("name");

    let listed = world.get("/secrets", &runner).await.ok();
    assert_eq!(listed.json()[0]["name"], "API_KEY");
    assert!(!listed.text.contains("first"));
    let decrypt = async || {
        let answer = world.post(&format!("/secrets/{id}/decrypt"), &runner, json!({"reason": "a call"})).await.ok();
        assert_eq!(answer.header("cache-control"), "no-store");
        answer.json()["value"].clone()
    };
    assert_eq!(decrypt().await, "first");
    let put = world.request("PUT", &format!("/secrets/{id}"), &curator).json(&json!({"value": "second"}));
    assert_eq!(answer(put).await.ok().json()["version"], 2);
    assert_eq!(decrypt().await, "second");
    world.post(&format!("/secrets/{id}/decrypt"), &runner, json!({"reason": " "})).await.violation("reason");
    answer(world.request("DELETE", &format!("/secrets/{id}"), &curator)).await.ok();
    answer(world.request("DELETE", &format!("/secrets/{id}"), &curator)).await.problem(404, "not_found");
    world.close().await;
}
