//! Lists, details and statistics of calls over HTTP. Their rules are in the conformance suite.

use rcrt_breadcrumb::Role;
use serde_json::json;
use uuid::Uuid;

use crate::harness::{World, request_for, response};

#[tokio::test]
async fn calls_are_listed_shown_and_counted() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, agent) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let request = world.create(&agent, request_for("echo")).await;
    let waiting = world.create(&agent, request_for("other")).await;
    let claim = json!({"runner_id": Uuid::new_v4(), "limit": 1, "lease_ms": 60000});
    let lease = world.post("/calls/claim", &runner, claim).await.ok().json()[0]["lease"].clone();
    world.post("/calls/complete", &runner, json!({"lease": lease, "response": response()})).await.ok();

    let page = world.get("/calls?limit=1", &agent).await.ok().json();
    assert_eq!((&page["calls"][0]["request"], &page["next"]), (&json!(waiting), &json!(waiting)));
    let page = world.get(&format!("/calls?limit=5&before={waiting}"), &agent).await.ok().json();
    assert_eq!((&page["calls"][0]["request"], &page["next"]), (&json!(request), &json!(null)));
    let page = world.get("/calls?state=queued", &agent).await.ok().json();
    assert_eq!(page["calls"].as_array().unwrap().len(), 1);
    let page = world.get(&format!("/calls?request_id={request}"), &agent).await.ok().json();
    assert_eq!(page["calls"][0]["tool"], "echo");
    for (query, field) in [
        ("state=done", "state"),
        ("status=bad", "status"),
        ("error_code=Oops", "error_code"),
        ("since=yesterday", "since"),
        ("limit=501", "limit"),
        ("parent=7", "parent"),
        ("colour=red", "colour"),
    ] {
        world.get(&format!("/calls?{query}"), &agent).await.violation(field);
    }

    let call = world.get(&format!("/calls/{request}"), &agent).await.ok().json();
    assert_eq!(call["state"], "finished");
    assert_eq!(call["request_record"]["id"], json!(request));
    assert_eq!(call["response_record"]["id"], call["response"]);

    let metrics = world.get("/metrics", &world.operators_token(&[Role::Curator]).await).await.ok().text;
    assert!(
        metrics.contains(&format!("rcrt_calls{{tenant=\"{tenant}\",tool=\"other\",state=\"queued\"}} 1")),
        "{metrics}"
    );
    assert!(metrics.contains(&format!("rcrt_oldest_waiting_call_seconds{{tenant=\"{tenant}\"}}")), "{metrics}");
    assert!(!world.get("/metrics", "").await.ok().text.contains("rcrt_calls{"), "names of tools are for the operator");

    world.get(&format!("/calls/{request}?format=openai"), &agent).await.violation("format");
    let stats = world.get("/calls/stats?window=10m", &curator).await.ok().json();
    assert_eq!((&stats["all"]["calls"], &stats["tools"][0]["tool"]), (&json!(1), &json!("echo")));
    assert_eq!(stats["interval_seconds"], 60);
    assert_eq!(world.get("/calls/stats?window=2d", &curator).await.ok().json()["interval_seconds"], 3600);
    world.get("/calls/stats?window=soon", &curator).await.violation("window");
    world.get("/calls/stats?window=90d", &curator).await.violation("window");
    world.close().await;
}
