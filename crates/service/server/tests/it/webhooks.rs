//! Webhooks and dead letters over HTTP. The posting itself is tested in the webhooks crate.

use std::time::Duration;

use rcrt_breadcrumb::{DeliveryClaimRequest, DeliveryOutcome, PrivateHost, Role};
use serde_json::json;

use crate::harness::{World, answer, note};

#[tokio::test]
async fn an_agent_manages_its_own_webhooks_and_a_curator_all() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (agent, token) = world.agent(tenant, &[Role::Subscriber]).await;
    let (other, stranger) = world.agent(tenant, &[Role::Subscriber]).await;
    let (writer, emitter) = world.agent(tenant, &[Role::Emitter]).await;
    let hooks = format!("/agents/{}/webhooks", agent.id);

    // The form that RCRT's clients send is enough.
    let made = world.post(&hooks, &token, json!({"url": "https://a.example/hook"})).await;
    assert_eq!(made.status.as_u16(), 201);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let full = json!({"url": "http://b.example:8080/", "description": "for b", "selector": {"any_tags": ["x"],
        "context_match": [{"path": "$.a", "op": "gt", "value": 1}]}});
    world.post(&hooks, &curator, full.clone()).await.ok();
    let listed = world.get(&hooks, &token).await.ok().json();
    assert_eq!((&listed[0]["id"], &listed[0]["url"]), (&json!(id), &json!("https://a.example/hook")));
    assert_eq!((&listed[1]["selector"], &listed[1]["description"]), (&full["selector"], &full["description"]));
    assert!(
        listed.as_array().unwrap().iter().all(|one| one["state"] == "active" && one["agent_id"] == json!(agent.id))
    );

    // An agent that cannot follow events cannot have them posted.
    let own = format!("/agents/{}/webhooks", writer.id);
    world.post(&own, &emitter, json!({"url": "https://d.example/"})).await.problem(403, "forbidden");
    world.get(&hooks, &stranger).await.problem(404, "not_found");
    world.post(&hooks, &stranger, json!({"url": "https://c.example/"})).await.problem(404, "not_found");
    world
        .post(&format!("/agents/{}/secret", agent.id), &stranger, json!({"secret": "mine, not yours"}))
        .await
        .problem(404, "not_found");
    // A webhook belongs to one agent, for every caller.
    let elsewhere = format!("/agents/{}/webhooks/{id}", other.id);
    answer(world.request("DELETE", &elsewhere, &curator)).await.problem(404, "not_found");

    let paused = world.post(&format!("{hooks}/{id}/pause"), &token, json!(null)).await.ok().json();
    assert_eq!((&paused["state"], &paused["paused_because"]), (&json!("paused"), &json!("paused by request")));
    let resumed = world.post(&format!("{hooks}/{id}/resume"), &curator, json!(null)).await.ok().json();
    assert_eq!(resumed["state"], "active");
    let set =
        world.post(&format!("/agents/{}/secret", agent.id), &token, json!({"secret": "a good secret"})).await.ok();
    assert_eq!((set.json(), set.header("cache-control")), (json!({"ok": true}), "no-store"));
    let gone = answer(world.request("DELETE", &format!("{hooks}/{id}"), &token)).await.ok();
    assert_eq!(gone.json(), json!({"ok": true}));
    assert_eq!(world.get(&hooks, &token).await.ok().json().as_array().unwrap().len(), 1);
    world.close().await;
}

#[tokio::test]
async fn invalid_webhooks_are_refused_with_their_field() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &[Role::Subscriber]).await;
    let hooks = format!("/agents/{}/webhooks", agent.id);
    for url in [
        "",
        "example.com/hook",
        "ftp://example.com/",
        "https://",
        "https://me:secret@example.com/",
        "https://a b/",
        "http://example.com:0/",
        "javascript:alert(1)",
        &format!("https://example.com/{}", "x".repeat(2048)),
    ] {
        world.post(&hooks, &token, json!({"url": url})).await.violation("url");
    }
    let good = "https://example.com/";
    let long = "x".repeat(1001);
    world.post(&hooks, &token, json!({"url": good, "description": long})).await.violation("description");
    for condition in [
        json!({"path": "$.a", "op": "gt", "value": []}),
        json!({"path": "$.a", "op": "contains_any", "value": vec![0; 30_000]}),
    ] {
        let selector = json!({"context_match": [condition]});
        world
            .post(&hooks, &token, json!({"url": good, "selector": selector}))
            .await
            .violation("selector.context_match[0].value");
    }
    for secret in ["", "short", &"x".repeat(501), "with a \0 in it"] {
        world
            .post(&format!("/agents/{}/secret", agent.id), &token, json!({"secret": secret}))
            .await
            .violation("secret");
    }
    for _ in 0..20 {
        world.post(&hooks, &token, json!({"url": good})).await.ok();
    }
    assert!(world.post(&hooks, &token, json!({"url": good})).await.violation("").contains("20 webhooks"));
    world.close().await;
}

#[tokio::test]
async fn a_private_host_is_refused_unless_the_operator_allowed_it() {
    let hosts = ["127.0.0.1:9000", "localhost"].map(|host| host.parse::<PrivateHost>().unwrap());
    let world = World::start_as(|options| options.allowed_private = hosts.into()).await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &[Role::Subscriber]).await;
    let hooks = format!("/agents/{}/webhooks", agent.id);
    for (url, says) in [
        ("http://10.0.0.7:8080/hook", "--allow-private-host webhooks=10.0.0.7:8080"),
        ("http://127.0.0.1:9001/", "--allow-private-host webhooks=127.0.0.1:9001"),
        ("http://hooks.localhost/", "--allow-private-host webhooks=hooks.localhost:80"),
        ("https://[::1]/", "--allow-private-host webhooks=[::1]:443"),
        ("http://169.254.169.254/", "it cannot be allowed"),
    ] {
        let found = world.post(&hooks, &token, json!({"url": url})).await.violation("url");
        assert!(found.contains("not on the public internet") && found.ends_with(says), "{url}: {found}");
    }
    for url in ["http://127.0.0.1:9000/hook", "http://localhost:1234/", "https://example.com/"] {
        world.post(&hooks, &token, json!({"url": url})).await.ok();
    }
    world.close().await;
}

#[tokio::test]
async fn curators_list_retry_and_delete_dead_letters() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, curator) = world.agent(tenant, &[Role::Curator]).await;
    world.post(&format!("/agents/{}/webhooks", agent.id), &curator, json!({"url": "https://a.example/"})).await.ok();
    for title in ["one", "two", "three"] {
        world.create(&curator, note(title)).await;
    }
    let queue = world.store.deliveries();
    let request = DeliveryClaimRequest { most: 100, per_webhook: 10, slow_from: 50, lease: Duration::from_mins(10) };
    let mut dead = 0;
    while dead < 3 {
        for delivery in queue.claim(&request).await.unwrap() {
            let outcome = DeliveryOutcome::Dead { error: "the receiver responded with 500".into(), hold: None };
            queue.complete(&delivery, &outcome).await.unwrap();
            dead += 1;
        }
    }
    let letters = world.get("/dlq?limit=2", &curator).await.ok().json();
    assert_eq!(letters.as_array().unwrap().len(), 2);
    let letter = &letters[0];
    assert_eq!((&letter["agent_id"], &letter["url"]), (&json!(agent.id), &json!("https://a.example/")));
    assert_eq!((&letter["last_error"], &letter["attempts"]), (&json!("the receiver responded with 500"), &json!(1)));
    assert_eq!(letter["payload"]["type"], "breadcrumb.created");
    assert!(letter["created_at"].is_string());
    assert_eq!(world.get("/dlq?limit=2&offset=2", &curator).await.ok().json().as_array().unwrap().len(), 1);
    for limit in ["0", "1001", "many"] {
        world.get(&format!("/dlq?limit={limit}"), &curator).await.violation("limit");
    }
    let id = letter["id"].as_str().unwrap();
    let again = world.post(&format!("/dlq/{id}/retry"), &curator, json!(null)).await.ok().json();
    assert_eq!(again, json!({"requeued": true}));
    world.post(&format!("/dlq/{id}/retry"), &curator, json!(null)).await.problem(404, "not_found");
    let other = letters[1]["id"].as_str().unwrap();
    answer(world.request("DELETE", &format!("/dlq/{other}"), &curator)).await.ok();
    let emptied = answer(world.request("DELETE", "/dlq", &curator)).await.ok().json();
    assert_eq!(emptied, json!({"ok": true, "deleted": 1}));
    assert_eq!(world.get("/dlq", &curator).await.ok().json(), json!([]));
    world.close().await;
}
