//! Notifications of the revision 2026-07-28.

use rcrt_breadcrumb::Role;
use serde_json::{Value, json};

use super::client::{self, Messages, modern, offer};
use crate::harness::note;

const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(scene: &crate::invoke::Scene, token: &str, filter: Value) -> reqwest::RequestBuilder {
    modern(&scene.world, token, "subscriptions/listen", json!({"notifications": filter}))
}

#[tokio::test]
async fn a_stream_carries_what_was_asked_for_and_ends_with_the_server() {
    let scene = client::scene(Vec::new()).await;
    let (world, token) = (&scene.world, scene.token.as_str());
    let id = world.create(token, note("watched")).await;
    let uri = format!("breadcrumb://{id}");
    let filter = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": [uri, "x://1"]});
    let mut messages = Messages::of(listen(&scene, token, filter)).await;
    let acknowledged = messages.next().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!([uri]));

    offer(world, scene.tenant, vec![client::tool("new", json!({"type": "object"}))]).await;
    let changed = client::notified(&mut messages, "notifications/tools/list_changed").await;
    assert_eq!(changed["params"]["_meta"][ID], json!(7));
    let guide = json!({"title": "G", "schema_name": "tool.guide.v1", "context": {"name": "g", "content": "c"}});
    world.create(token, guide).await;
    client::notified(&mut messages, "notifications/prompts/list_changed").await;
    // Resources were not asked for, and another record is not the watched one.
    world.create(token, note("another")).await;
    let changes = json!({"title": "watched and changed"});
    let change = world.request("PATCH", &format!("/breadcrumbs/{id}"), token).header("If-Match", "1").json(&changes);
    crate::harness::answer(change).await.ok();
    let updated = client::notified(&mut messages, "notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], json!(uri));
    world.shutdown.cancel();
    while messages.next().await.is_some() {}
    scene.world.close().await;
}

#[tokio::test]
async fn a_caller_gets_notified_of_tools_and_a_revoked_token_ends_the_stream() {
    let scene = client::scene(Vec::new()).await;
    let (agent, token) = scene.world.agent(scene.tenant, &[Role::Caller]).await;
    let mut messages = Messages::of(listen(&scene, &token, json!({"toolsListChanged": true}))).await;
    messages.next().await.unwrap();
    offer(&scene.world, scene.tenant, vec![client::tool("new", json!({"type": "object"}))]).await;
    assert_eq!(messages.next().await.unwrap()["method"], "notifications/tools/list_changed");
    let (_, curator) = scene.world.agent(scene.tenant, &[Role::Curator]).await;
    let body = json!({"agent_id": agent.id, "all": true});
    scene.world.post("/auth/revoke", &curator, body).await.ok();
    // The final result, and the end. A change from shortly before can be notified too.
    let ended = loop {
        let message = messages.next().await.unwrap();
        if message["method"] != "notifications/tools/list_changed" {
            break message;
        }
    };
    assert_eq!((&ended["id"], &ended["result"]["resultType"]), (&json!(7), &json!("complete")), "{ended}");
    assert_eq!(messages.next().await, None);
    scene.world.close().await;
}
