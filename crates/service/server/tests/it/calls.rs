use rcrt_breadcrumb::Role;
use serde_json::json;
use uuid::Uuid;

use crate::harness::{World, request_for, response};

#[tokio::test]
async fn a_call_goes_from_the_queue_to_its_response() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, agent) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let request = world.create(&agent, request_for("echo")).await;
    let state = async || world.get(&format!("/calls/{request}"), &agent).await.ok().json();
    assert_eq!(state().await["state"], "queued");

    let claim = json!({"runner_id": Uuid::new_v4(), "limit": 5, "lease_ms": 60000});
    let claims = world.post("/calls/claim", &runner, claim.clone()).await.ok().json();
    assert_eq!((claims.as_array().unwrap().len(), &claims[0]["request"]["id"]), (1, &json!(request)));
    let lease = claims[0]["lease"].clone();
    assert_eq!(world.post("/calls/claim", &runner, claim.clone()).await.ok().json(), json!([]));

    let released = world.post("/calls/release", &runner, json!({"lease": lease, "release": "unstarted"})).await;
    assert_eq!(released.ok().json(), json!({"ok": true}));
    let lost = world.post("/calls/start", &runner, json!({"lease": lease, "max_attempts": 1})).await;
    assert_eq!(lost.problem(409, "lease_lost")["id"], json!(request));

    let lease = world.post("/calls/claim", &runner, claim).await.ok().json()[0]["lease"].clone();
    world.post("/calls/start", &runner, json!({"lease": lease, "max_attempts": 1})).await.ok();
    assert_eq!(state().await["state"], "running");
    let beat = world.post("/calls/heartbeat", &runner, json!({"leases": [lease], "lease_ms": 5000})).await.ok().json();
    assert_eq!(beat, json!([{"lease": lease, "status": "held"}]));
    assert_eq!(
        world.post(&format!("/calls/{request}/cancel"), &agent, json!(null)).await.ok().json()["cancel_requested"],
        true
    );
    let beat = world.post("/calls/heartbeat", &runner, json!({"leases": [lease], "lease_ms": 5000})).await.ok().json();
    assert_eq!(beat[0]["status"], "cancel_requested");

    let complete = json!({"lease": lease, "response": response()});
    let response = world.post("/calls/complete", &runner, complete.clone()).await.ok().json()["id"].clone();
    let finished = state().await;
    assert_eq!((&finished["state"], &finished["response"]), (&json!("finished"), &response));
    world.close().await;
}
