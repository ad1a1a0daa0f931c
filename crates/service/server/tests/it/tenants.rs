//! The data of another tenant is not found.

use rcrt_breadcrumb::Role;
use serde_json::json;

use crate::harness::{World, answer, note, request_for, response};

#[tokio::test]
async fn another_tenants_ids_are_not_found_on_any_route() {
    let world = World::start().await;
    let mine = world.token(&Role::ALL).await;
    let theirs_tenant = world.tenant().await;
    let (their_agent, theirs) = world.agent(theirs_tenant, &Role::ALL).await;
    let record = world.create(&theirs, note("theirs")).await;
    let request = world.create(&theirs, request_for("echo")).await;
    let secret =
        world.post("/secrets", &theirs, json!({"name": "KEY", "value": "a long value"})).await.ok().json()["id"]
            .clone();
    let secret = secret.as_str().unwrap();
    let agent = their_agent.id;
    let tool = json!({"title": "a tool", "schema_name": "tool.code.v1", "context": {"name": "theirs"}});
    let tool = world.create(&theirs, tool).await;
    world.post(&format!("/secrets/{secret}/grants"), &theirs, json!({"tool_id": tool})).await.ok();

    let tries = [
        ("GET", format!("/breadcrumbs/{record}"), None),
        ("GET", format!("/breadcrumbs/{record}/full"), None),
        ("GET", format!("/breadcrumbs/{record}/history"), None),
        ("PATCH", format!("/breadcrumbs/{record}"), Some(json!({"title": "mine now"}))),
        ("DELETE", format!("/breadcrumbs/{record}"), None),
        ("GET", format!("/calls/{request}"), None),
        ("POST", format!("/calls/{request}/cancel"), None),
        ("PUT", format!("/secrets/{secret}"), Some(json!({"value": "mine from now on"}))),
        ("DELETE", format!("/secrets/{secret}"), None),
        ("POST", format!("/secrets/{secret}/decrypt"), Some(json!({"reason": "curious"}))),
        ("POST", format!("/secrets/{secret}/decrypt"), Some(json!({"reason": "curious", "tool_id": tool}))),
        ("POST", format!("/secrets/{secret}/grants"), Some(json!({"tool_id": tool}))),
        ("DELETE", format!("/secrets/{secret}/grants/{tool}"), None),
        ("GET", format!("/agents/{agent}"), None),
        ("DELETE", format!("/agents/{agent}"), None),
    ];
    for (method, path, body) in tries {
        let mut sent = world.request(method, &path, &mine).header("If-Match", "\"1\"");
        if let Some(body) = body {
            sent = sent.json(&body);
        }
        let problem = answer(sent).await.problem(404, "not_found");
        assert!(path.contains(problem["id"].as_str().unwrap()), "{method} {path}: {problem}");
    }

    let lease = json!({"request": request, "fence": 1});
    for (path, body) in [
        ("/calls/start", json!({"lease": lease, "max_attempts": 1})),
        ("/calls/complete", json!({"lease": lease, "response": response()})),
        ("/calls/release", json!({"lease": lease, "release": "unstarted"})),
    ] {
        let answer = world.post(path, &mine, body).await;
        assert!(matches!(answer.status.as_u16(), 404 | 409), "{path}: {} {}", answer.status, answer.text);
    }
    let beat = world.post("/calls/heartbeat", &mine, json!({"leases": [lease], "lease_ms": 5000})).await.ok().json();
    assert_eq!(beat[0]["status"], "lost");

    for path in ["/breadcrumbs", "/breadcrumbs/search?q=theirs", "/secrets"] {
        assert_eq!(world.get(path, &mine).await.ok().json(), json!([]), "{path}");
    }
    let claim = json!({"runner_id": agent, "limit": 10, "lease_ms": 5000});
    assert_eq!(world.post("/calls/claim", &mine, claim).await.ok().json(), json!([]));
    // Their record is unchanged.
    let still = world.get(&format!("/breadcrumbs/{record}"), &theirs).await.ok().json();
    assert_eq!((&still["title"], &still["version"]), (&json!("theirs"), &json!(1)));
    world.close().await;
}
