use rcrt_breadcrumb::{OLDEST_RUNNER_PROTOCOL, RUNNER_PROTOCOL, RUNNER_PROTOCOL_HEADER, Role};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{World, answer, request_for, response};

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

/// The first version's requests: without every field that came later.
#[tokio::test]
async fn a_runner_of_the_oldest_version_works() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, agent) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let id = Uuid::new_v4();
    let report = json!({"runner_id": id, "lease_ms": 60000, "applied": 0, "host": "h", "version": "0.0.1",
        "started_at": "2026-01-31T12:00:00Z", "draining": false,
        "slots": {"worker": {"used": 0, "free": 1}, "waiting": {"used": 0, "free": 1}}});
    world.post("/runners", &runner, report).await.ok();
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    assert_eq!(world.get("/runners", &curator).await.ok().json()[0]["version"], "0.0.1");
    let request = world.create(&agent, request_for("echo")).await;
    let claim = json!({"runner_id": id, "limit": 1, "lease_ms": 60000});
    let claimed = world.post("/calls/claim", &runner, claim).await.ok().json()[0].clone();
    assert_eq!((&claimed["attempt"], &claimed["request"]["id"]), (&json!(1), &json!(request)));
    let lease = claimed["lease"].clone();
    world.post("/calls/start", &runner, json!({"lease": lease, "max_attempts": 1})).await.ok();
    world.post("/calls/heartbeat", &runner, json!({"leases": [lease], "lease_ms": 60000})).await.ok();
    world.post("/calls/complete", &runner, json!({"lease": lease, "response": response()})).await.ok();
    assert_eq!(world.get(&format!("/calls/{request}"), &agent).await.ok().json()["state"], "finished");
    world.close().await;
}

/// It claims nothing more, but the call that it has already is not lost.
#[tokio::test]
async fn a_runner_of_another_protocol_is_refused_with_what_to_do() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, agent) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let request = world.create(&agent, request_for("echo")).await;
    let claim = async |number: String| {
        let body = json!({"runner_id": Uuid::new_v4(), "limit": 1, "lease_ms": 60000});
        let claim = world.request("POST", "/calls/claim", &runner).header(RUNNER_PROTOCOL_HEADER, number);
        answer(claim.json(&body)).await
    };
    let lease = claim(RUNNER_PROTOCOL.to_string()).await.ok().json()[0]["lease"].clone();
    for (number, says) in [
        ((OLDEST_RUNNER_PROTOCOL - 1).to_string(), "upgrade the runner"),
        ((RUNNER_PROTOCOL + 1).to_string(), "upgrade the servers before the runners"),
        ("new".to_owned(), "must be a whole number"),
    ] {
        let problem = claim(number).await.problem(400, "invalid");
        let violation = &problem["violations"][0];
        assert_eq!(violation["field"], RUNNER_PROTOCOL_HEADER);
        assert!(violation["message"].as_str().unwrap().contains(says), "{problem}");
    }
    world.post("/calls/start", &runner, json!({"lease": lease, "max_attempts": 1})).await.ok();
    world.post("/calls/complete", &runner, json!({"lease": lease, "response": response()})).await.ok();
    assert_eq!(world.get(&format!("/calls/{request}"), &agent).await.ok().json()["state"], "finished");
    world.close().await;
}
