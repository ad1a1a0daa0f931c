//! Grants, in the shapes that RCRT's clients send: what they allow on each route, until they are
//! revoked.

use rcrt_breadcrumb::Role::{Curator, Emitter, Runner, Subscriber};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Answer, World, answer, note};

fn private() -> Value {
    let mut record = note("private");
    record["visibility"] = "private".into();
    record
}

/// The statuses of each request for a record: GET, /full, /history, PATCH and DELETE. It must be at
/// version 1.
async fn statuses(world: &World, id: Uuid, token: &str) -> Vec<u16> {
    let mut statuses = Vec::new();
    for path in ["", "/full", "/history"] {
        statuses.push(world.get(&format!("/breadcrumbs/{id}{path}"), token).await.status.as_u16());
    }
    for (method, body) in [("PATCH", json!({"title": "changed"})), ("DELETE", Value::Null)] {
        let asked = world.request(method, &format!("/breadcrumbs/{id}"), token).header("If-Match", "\"1\"");
        let asked = if body.is_null() { asked } else { asked.json(&body) };
        statuses.push(answer(asked).await.status.as_u16());
    }
    statuses
}

#[tokio::test]
async fn each_action_allows_its_routes_for_each_kind_of_grantee() {
    let world = World::start().await;
    let (tenant, elsewhere) = (world.tenant().await, world.tenant().await);
    let (_, author) = world.agent(tenant, &[Emitter]).await;
    let (colleague, colleagues) = world.agent(tenant, &[Emitter, Subscriber]).await;
    let (stranger, strangers) = world.agent(elsewhere, &[Curator, Emitter, Subscriber]).await;
    let (_, others) = world.agent(elsewhere, &[Emitter]).await;
    for (action, open) in [
        ("read_context", [200, 404, 404, 404, 404]),
        ("read_full", [200, 200, 200, 404, 404]),
        ("update", [404, 404, 404, 200, 404]),
        ("delete", [404, 404, 404, 404, 200]),
        ("subscribe", [404, 404, 404, 404, 404]),
    ] {
        let grantees = [
            (json!({"grantee_agent_id": colleague.id}), &colleagues, &strangers),
            (json!({"grantee_agent_id": stranger.id}), &strangers, &others),
            (json!({"grantee_owner_id": elsewhere}), &others, &colleagues),
        ];
        for (grantee, theirs, others_token) in grantees {
            let id = world.create(&author, private()).await;
            let mut change = json!({"breadcrumb_id": id, "action": action});
            change.as_object_mut().unwrap().extend(grantee.as_object().unwrap().clone());
            let granted = world.post("/acl/grant", &author, change.clone()).await.ok().json();
            let grant: Uuid = granted["id"].as_str().unwrap().parse().unwrap();
            let listed = world.get(&format!("/acl?breadcrumb_id={id}"), &author).await.ok().json();
            let entry = &listed.as_array().unwrap()[0];
            assert_eq!(entry["id"], grant.to_string());
            assert_eq!((&entry["breadcrumb_id"], &entry["actions"]), (&json!(id), &json!([action])));
            assert_eq!(entry["grantee_agent_id"], grantee["grantee_agent_id"]);
            assert_eq!(entry["grantee_owner_id"], grantee["grantee_owner_id"]);
            assert!(entry["created_at"].is_string());

            assert_eq!(statuses(&world, id, others_token).await, [404; 5], "{action}");
            assert_eq!(world.post("/acl/revoke", &author, change.clone()).await.ok().json(), json!({"rows": 1}));
            assert_eq!(statuses(&world, id, theirs).await, [404; 5], "{action} after its end");
            assert_eq!(world.post("/acl/revoke", &author, change.clone()).await.ok().json(), json!({"rows": 0}));
            world.post("/acl/grant", &author, change).await.ok();
            assert_eq!(statuses(&world, id, theirs).await, open, "{action} {grantee}");
        }
    }
    // The curator and the runner need no grant.
    for role in [Curator, Runner] {
        let id = world.create(&author, private()).await;
        let (_, token) = world.agent(tenant, &[role]).await;
        // The last request gets the version that the previous one made.
        assert_eq!(statuses(&world, id, &token).await, [200, 200, 200, 200, 412], "{role:?}");
    }
    world.close().await;
}

#[tokio::test]
async fn grants_without_the_right_are_refused_and_change_nothing() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (author, authors) = world.agent(tenant, &[Emitter]).await;
    let (colleague, colleagues) = world.agent(tenant, &[Emitter]).await;
    let (_, curators) = world.agent(tenant, &[Curator]).await;
    let stranger = world.token(&[Curator]).await;
    let team = world.create(&authors, note("team")).await;
    let change = json!({"breadcrumb_id": team, "grantee_agent_id": colleague.id, "actions": ["update"]});
    for path in ["/acl/grant", "/acl/revoke"] {
        world.post(path, &colleagues, change.clone()).await.problem(403, "forbidden");
        world.post(path, &stranger, change.clone()).await.problem(404, "not_found");
    }
    assert_eq!(world.get("/acl", &curators).await.ok().json(), json!([]));
    world.post("/acl/grant", &curators, change.clone()).await.ok();
    assert_eq!(world.get("/acl", &curators).await.ok().json().as_array().unwrap().len(), 1);
    assert_eq!(world.get("/acl", &authors).await.ok().json().as_array().unwrap().len(), 1);
    for token in [&colleagues, &stranger] {
        assert_eq!(world.get("/acl", token).await.ok().json(), json!([]));
    }
    let refused = async |body: Value, field: &str| -> Answer {
        let answer = world.post("/acl/grant", &authors, body).await;
        answer.violation(field);
        answer
    };
    let with = |field: &str, value: Value| {
        let mut body = json!({"breadcrumb_id": team, "grantee_agent_id": author.id, "action": "update"});
        body[field] = value;
        body
    };
    refused(with("action", json!("write")), "action").await;
    refused(with("grantee_owner_id", json!(tenant)), "grantee_owner_id").await;
    refused(with("grantee_agent_id", Value::Null), "grantee_agent_id").await;
    refused(with("grantee_agent_id", json!(Uuid::new_v4())), "grantee_agent_id").await;
    refused(with("actions", json!(["delete"])), "action").await;
    refused(with("breadcrumb_id", json!("x")), "breadcrumb_id").await;
    world.get("/acl?breadcrumb_id=x", &authors).await.violation("breadcrumb_id");
    world.close().await;
}

#[tokio::test]
async fn only_a_runner_can_act_on_behalf_of_another_agent() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (author, authors) = world.agent(tenant, &[Emitter]).await;
    let (colleague, colleagues) = world.agent(tenant, &[Emitter]).await;
    let (_, runners) = world.agent(tenant, &[Runner]).await;
    let id = world.create(&authors, private()).await;
    let read = async |token: &str, on_behalf_of: &str| {
        let asked = world.request("GET", &format!("/breadcrumbs/{id}"), token).header("X-Acting-For", on_behalf_of);
        answer(asked).await
    };
    read(&runners, &author.id.to_string()).await.ok();
    read(&runners, &colleague.id.to_string()).await.problem(404, "not_found");
    read(&colleagues, &author.id.to_string()).await.problem(403, "forbidden");
    read(&runners, "nobody").await.violation("x-acting-for");
    world.close().await;
}
