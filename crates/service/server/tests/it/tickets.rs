//! One-time tickets for event streams and sign-ins, and the tokens in URLs that `rcrt_compat`
//! accepts.

use std::time::Duration;

use rcrt_breadcrumb::{Identity, Profile, Role, Tenancy};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    events::Wire,
    harness::{World, answer, key, note},
};

pub async fn ticket(world: &World, token: &str) -> String {
    let given = world.request("POST", "/events/ticket", token).send().await.unwrap();
    assert_eq!((given.status().as_u16(), &given.headers()["cache-control"].to_str().unwrap()), (200, &"no-store"));
    let given: Value = given.json().await.unwrap();
    assert_eq!(given["expires_in"], 30);
    given["ticket"].as_str().unwrap().to_owned()
}

fn detail(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap()
}

#[tokio::test]
async fn a_ticket_opens_one_stream_on_any_server() {
    let world = World::start().await;
    let beside = world.beside().await;
    let token = world.token(&[Role::Subscriber, Role::Emitter]).await;
    let ticket = ticket(&world, &token).await;
    let path = format!("/events/stream?ticket={ticket}");
    let mut wire = Wire::open(beside.request("GET", &path, "")).await;
    wire.next().await.unwrap();
    world.create(&token, note("heard")).await;
    assert_eq!(wire.next().await.unwrap().1["context"]["text"], "heard");
    for server in [&world, &beside] {
        let again = server.get(&path, "").await.problem(401, "unauthorized");
        assert!(detail(&again).contains("already used") && detail(&again).contains("/events/ticket"), "{again}");
    }
    beside.close().await;
    world.close().await;
}

#[tokio::test]
async fn tickets_and_tokens_are_not_interchangeable() {
    let world = World::start().await;
    let token = world.token(&[Role::Curator]).await;
    let ticket = ticket(&world, &token).await;
    world.get("/breadcrumbs", &ticket).await.problem(401, "unauthorized");
    world.get("/events/stream", &ticket).await.problem(401, "unauthorized");
    world.get(&format!("/breadcrumbs?ticket={ticket}"), "").await.problem(401, "unauthorized");
    world.get(&format!("/events/stream?ticket={token}"), "").await.problem(401, "unauthorized");
    world.get("/events/stream?ticket=x", "").await.problem(401, "unauthorized");
    world.get(&format!("/events/stream?ticket={ticket}&ticket={ticket}"), "").await.problem(400, "invalid");
    // None of these requests has used it.
    Wire::open(world.request("GET", &format!("/events/stream?ticket={ticket}"), "")).await;
    world.close().await;
}

#[tokio::test]
async fn a_sign_in_ticket_is_exchanged_once_for_a_token_with_the_same_rights() {
    let world = World::start().await;
    let beside = world.beside().await;
    let token = world.token(&[Role::Subscriber]).await;
    let given = answer(world.request("POST", "/auth/ticket", &token)).await.ok();
    assert_eq!(given.header("cache-control"), "no-store");
    let given = given.json();
    assert_eq!(given["expires_in"], 600);
    let ask = json!({"ticket": given["ticket"]});
    let session = beside.post("/auth/sign-in", "", ask.clone()).await.ok().json();
    let own = key().verify(session["token"].as_str().unwrap()).unwrap();
    let first = key().verify(&token).unwrap();
    assert_eq!((&own.identity, own.expires_at <= first.expires_at), (&first.identity, true));
    assert!(own.id.jti != first.id.jti && session["expires_in"].as_u64().unwrap() <= 12 * 3600);
    for server in [&world, &beside] {
        let again = server.post("/auth/sign-in", "", ask.clone()).await.problem(401, "unauthorized");
        assert!(detail(&again).contains("already used") && detail(&again).contains("rcrt open"), "{again}");
    }
    beside.close().await;
    world.close().await;
}

#[tokio::test]
async fn tickets_are_accepted_for_their_purpose_only() {
    let world = World::start().await;
    let token = world.token(&[Role::Curator]).await;
    let for_stream = ticket(&world, &token).await;
    let given = answer(world.request("POST", "/auth/ticket", &token)).await.ok().json();
    let to_sign_in = given["ticket"].as_str().unwrap();
    for wrong in [&*for_stream, &*token, "x", ""] {
        world.post("/auth/sign-in", "", json!({"ticket": wrong})).await.problem(401, "unauthorized");
    }
    world.get(&format!("/events/stream?ticket={to_sign_in}"), "").await.problem(401, "unauthorized");
    world.get("/breadcrumbs", to_sign_in).await.problem(401, "unauthorized");
    // Also not after the token with which it was requested was revoked.
    answer(world.request("POST", "/auth/revoke", &token).json(&json!({}))).await.ok();
    let refused = world.post("/auth/sign-in", "", json!({"ticket": to_sign_in})).await.problem(401, "unauthorized");
    assert!(detail(&refused).contains("revoked"), "{refused}");
    world.close().await;
}

#[tokio::test]
async fn a_token_in_a_url_is_refused_with_a_hint_to_tickets() {
    let world = World::start().await;
    let token = world.token(&[Role::Subscriber]).await;
    for name in ["token", "access_token"] {
        let path = format!("/events/stream?{name}={token}");
        // Also if there is a header: the URL is logged anyway.
        for header in ["", &token] {
            let refused = world.get(&path, header).await.problem(401, "unauthorized");
            assert!(detail(&refused).contains("POST /events/ticket"), "{refused}");
        }
    }
    world.close().await;
}

#[tokio::test]
async fn a_stream_with_a_ticket_closes_when_the_token_expires() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, _) = world.agent(tenant, &[Role::Subscriber]).await;
    let (_, mut wire) = brief_stream(&world, tenant, agent.id, true).await;
    assert!(wire.next().await.is_some());
    assert!(wire.next().await.is_none());
    world.close().await;
}

/// A token that expires soon, and a stream opened with it or with a ticket for it. If the token
/// expires before the stream is open, a token with twice the validity is tried.
pub async fn brief_stream(world: &World, tenant: Uuid, agent_id: Uuid, by_ticket: bool) -> (String, Wire) {
    let identity = Identity { owner_id: tenant, agent_id, roles: vec![Role::Subscriber], profile: Profile::Main };
    for seconds in [2, 4, 8, 16, 32] {
        let token = key().issue(&identity, Duration::from_secs(seconds)).unwrap();
        let (path, header) = if by_ticket {
            let given = answer(world.request("POST", "/events/ticket", &token)).await;
            let Some(ticket) = given.json()["ticket"].as_str().map(str::to_owned) else {
                given.problem(401, "unauthorized");
                continue;
            };
            (format!("/events/stream?ticket={ticket}"), "")
        } else {
            ("/events/stream".to_owned(), &*token)
        };
        let response = world.request("GET", &path, header).send().await.unwrap();
        if response.status() != 401 {
            return (token, Wire::of(response));
        }
    }
    panic!("no stream was opened in time");
}

#[tokio::test]
async fn rcrt_compat_accepts_a_token_in_a_url_and_keeps_the_stream_open() {
    let world = World::start_as(|options| options.rcrt_compat = true).await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &[Role::Subscriber]).await;
    let (_, emitter) = world.agent(tenant, &[Role::Emitter]).await;
    for (path, header) in [
        (format!("/events/stream?token={token}"), ""),
        (format!("/events/stream?access_token={token}"), ""),
        // RCRT's clients send both if they can.
        (format!("/events/stream?access_token={token}"), &*token),
    ] {
        Wire::open(world.request("GET", &path, header)).await.next().await.unwrap();
    }
    // Only on this route.
    world.get(&format!("/breadcrumbs?token={token}"), "").await.problem(401, "unauthorized");

    let (brief, mut wire) = brief_stream(&world, tenant, agent.id, false).await;
    wire.next().await.unwrap();
    while world.get("/events/latest", &brief).await.status == 200 {
        tokio::task::yield_now().await;
    }
    world.create(&emitter, note("after its end")).await;
    assert_eq!(wire.next().await.unwrap().1["context"]["text"], "after its end");
    // But not after the deletion of its agent.
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    answer(world.request("DELETE", &format!("/agents/{}", agent.id), &curator)).await.ok();
    assert!(wire.next().await.is_none());
    assert!(world.store.agent(tenant, agent.id).await.unwrap().is_none());
    world.close().await;
}
