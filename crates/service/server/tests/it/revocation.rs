//! Tokens that are revoked before they expire.

use std::time::Duration;

use rcrt_breadcrumb::{Identity, Profile, Role};
use rcrt_server::AuthMode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    events::Wire,
    harness::{PATIENCE, World, answer, key},
    tickets::ticket,
};

fn token_of(tenant: Uuid, agent_id: Uuid, roles: &[Role]) -> String {
    let identity = Identity { owner_id: tenant, agent_id, roles: roles.to_vec(), profile: Profile::Main };
    key().issue(&identity, Duration::from_mins(10)).unwrap()
}

fn jti(token: &str) -> Uuid {
    key().verify(token).unwrap().id.jti
}

#[track_caller]
fn is_revoked(answer: &crate::harness::Answer) {
    assert_eq!(answer.problem(401, "unauthorized")["detail"], "the token was revoked");
}

#[tokio::test]
async fn an_agent_revokes_its_own_token_and_only_its_streams_close() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let roles = [Role::Subscriber];
    let (agent, first) = world.agent(tenant, &roles).await;
    let second = token_of(tenant, agent.id, &roles);
    let mut streams = Vec::new();
    for request in [
        world.request("GET", "/events/stream", &first),
        world.request("GET", &format!("/events/stream?ticket={}", ticket(&world, &first).await), ""),
    ] {
        let mut wire = Wire::open(request).await;
        wire.next().await.unwrap();
        streams.push(wire);
    }
    let mut other = Wire::open(world.request("GET", "/events/stream", &second)).await;
    other.next().await.unwrap();
    let unused = ticket(&world, &first).await;

    let done = world.post("/auth/revoke", &first, json!({})).await.ok().json();
    assert_eq!(done, json!({"ok": true, "agent_id": agent.id, "jti": jti(&first)}));
    is_revoked(&world.get("/breadcrumbs", &first).await);
    is_revoked(&world.get(&format!("/events/stream?ticket={unused}"), "").await);
    for mut wire in streams {
        assert!(wire.next().await.is_none(), "its streams close at once");
    }
    world.get("/breadcrumbs", &second).await.ok();
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    world.create(&curator, crate::harness::note("still heard")).await;
    assert_eq!(other.next().await.unwrap().1["context"]["text"], "still heard");
    world.close().await;
}

#[tokio::test]
async fn a_curator_revokes_by_token_by_id_or_all_of_an_agent() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let roles = [Role::Emitter];
    let (agent, by_id) = world.agent(tenant, &roles).await;
    let (curator_agent, curator) = world.agent(tenant, &[Role::Curator]).await;
    let [held, third, fourth] = [(); 3].map(|()| token_of(tenant, agent.id, &roles));
    let revoke = |body: Value| world.post("/auth/revoke", &curator, body);
    revoke(json!({"jti": jti(&by_id), "agent_id": agent.id})).await.ok();
    is_revoked(&world.get("/breadcrumbs", &by_id).await);
    world.get("/breadcrumbs", &held).await.ok();
    revoke(json!({"token": held})).await.ok();
    is_revoked(&world.get("/breadcrumbs", &held).await);
    world.get("/breadcrumbs", &third).await.ok();

    let done = revoke(json!({"all": true, "agent_id": agent.id})).await.ok().json();
    assert!(done["issued_before"].is_string() && done["agent_id"] == json!(agent.id), "{done}");
    for token in [&by_id, &held, &third, &fourth] {
        is_revoked(&world.get("/breadcrumbs", token).await);
    }
    // A token that is issued later is valid at once.
    world.get("/breadcrumbs", &token_of(tenant, agent.id, &roles)).await.ok();
    world.get("/breadcrumbs", &curator).await.ok();
    let log = world.store.audit_log(tenant, 3).await.unwrap();
    assert_eq!(log[0].action, "token.all_revoked");
    assert_eq!((log[0].agent_id, log[0].subject), (Some(curator_agent.id), agent.id));
    assert_eq!((&*log[1].action, log[1].subject), ("token.revoked", jti(&held)));
    world.close().await;
}

#[tokio::test]
async fn an_agent_cannot_revoke_tokens_of_others_and_bad_input_is_named() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &[Role::Emitter]).await;
    let (mine, own) = world.agent(tenant, &[Role::Emitter]).await;
    let elsewhere = world.token(&[Role::Curator]).await;
    for body in [
        json!({"jti": jti(&token), "agent_id": agent.id}),
        json!({"token": token}),
        json!({"all": true, "agent_id": agent.id}),
    ] {
        world.post("/auth/revoke", &own, body).await.problem(403, "forbidden");
    }
    world.post("/auth/revoke", &elsewhere, json!({"token": token})).await.violation("token");
    world
        .post("/auth/revoke", &elsewhere, json!({"jti": jti(&token), "agent_id": agent.id}))
        .await
        .problem(404, "not_found");
    world.get("/breadcrumbs", &token).await.ok();
    world.post("/auth/revoke", &own, json!({"jti": jti(&own), "all": true})).await.violation("");
    world.post("/auth/revoke", &own, json!({"agent_id": mine.id})).await.violation("agent_id");
    world.post("/auth/revoke", &own, json!({"token": "x"})).await.violation("token");
    world.post("/auth/revoke", &own, json!({"jti": "x"})).await.violation("jti");
    world.post("/auth/revoke", &own, json!({"all": true})).await.ok();
    is_revoked(&world.get("/breadcrumbs", &own).await);
    world.close().await;
}

#[tokio::test]
async fn an_unlisted_id_is_only_revoked_with_its_agent() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (agent, token) = world.agent(tenant, &[Role::Emitter]).await;
    let (other, _) = world.agent(tenant, &[Role::Emitter]).await;
    let revoke = |body: Value| world.post("/auth/revoke", &curator, body);
    let wrong = Uuid::new_v4();
    let problem = revoke(json!({"jti": wrong})).await.problem(404, "not_found");
    assert_eq!((&problem["what"], &problem["id"]), (&json!("token"), &json!(wrong)));
    assert!(problem["detail"].as_str().unwrap().contains("agent_id"), "{problem}");
    // Nothing was written.
    assert!(world.store.audit_log(tenant, 10).await.unwrap().iter().all(|line| line.action != "token.revoked"));

    // It was not used yet, so it is not listed.
    let done = revoke(json!({"jti": jti(&token), "agent_id": agent.id})).await.ok().json();
    assert_eq!(done["unlisted"], json!(true), "{done}");
    is_revoked(&world.get("/breadcrumbs", &token).await);

    let used = token_of(tenant, agent.id, &[Role::Emitter]);
    world.get("/breadcrumbs", &used).await.ok();
    let body = json!({"jti": jti(&used), "agent_id": other.id});
    assert!(revoke(body).await.violation("agent_id").contains(&agent.id.to_string()));
    let done = revoke(json!({"jti": jti(&used), "agent_id": agent.id})).await.ok().json();
    assert!(done.get("unlisted").is_none(), "{done}");
    world.close().await;
}

#[tokio::test]
async fn another_server_applies_a_revocation_and_closes_its_streams() {
    let world = World::start().await;
    // A ping would also find the revocation.
    let beside = world.beside_as(|options| options.streams.ping_every = Duration::from_hours(1)).await;
    let token = world.token(&[Role::Subscriber]).await;
    let mut wire = Wire::open(beside.request("GET", "/events/stream", &token)).await;
    wire.next().await.unwrap();
    world.post("/auth/revoke", &token, json!({})).await.ok();
    let ended = tokio::time::timeout(PATIENCE, async { while wire.next().await.is_some() {} });
    ended.await.expect("the stream closes");
    is_revoked(&beside.get("/breadcrumbs", &token).await);
    beside.close().await;
    world.close().await;
}

#[tokio::test]
async fn another_server_closes_the_streams_of_changed_and_of_deleted_agents() {
    let world = World::start().await;
    let beside = world.beside_as(|options| options.streams.ping_every = Duration::from_hours(1)).await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    for is_deleted in [false, true] {
        let (agent, token) = world.agent(tenant, &[Role::Subscriber]).await;
        let mut wire = Wire::open(beside.request("GET", "/events/stream", &token)).await;
        wire.next().await.unwrap();
        let path = format!("/agents/{}", agent.id);
        if is_deleted {
            answer(world.request("DELETE", &path, &curator)).await.ok();
        } else {
            world.post(&path, &curator, json!({"roles": ["emitter"]})).await.ok();
        }
        let ended = tokio::time::timeout(PATIENCE, async { while wire.next().await.is_some() {} });
        ended.await.expect("the stream closes");
    }
    beside.close().await;
    world.close().await;
}

#[tokio::test]
async fn in_open_mode_a_token_can_be_revoked_too() {
    let world = World::start_with(AuthMode::Open).await;
    let token = world.post("/auth/token", "", json!({})).await.ok().json()["token"].as_str().unwrap().to_owned();
    world.get("/breadcrumbs", &token).await.ok();
    world.post("/auth/revoke", &token, json!({})).await.ok();
    is_revoked(&world.get("/breadcrumbs", &token).await);
    world.close().await;
}

#[tokio::test]
async fn single_revocations_are_bounded() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &[Role::Emitter]).await;
    let any = || json!({"jti": Uuid::new_v4(), "agent_id": agent.id});
    for _ in 0..1000 {
        world.post("/auth/revoke", &token, any()).await.ok();
    }
    let refused = world.post("/auth/revoke", &token, any()).await.violation("jti");
    assert!(refused.contains("revoke all"), "{refused}");
    answer(world.request("POST", "/auth/revoke", &token).json(&json!({"all": true}))).await.ok();
    world.close().await;
}
