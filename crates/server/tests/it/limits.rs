//! What a server takes at once, and what it says to the rest.

use std::time::Duration;

use breadcrumb::Role;
use serde_json::json;
use server::{AuthMode, Limits, Rate};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::{World, note};

/// So many at once, and then none for a long time. As the limits take it.
#[allow(clippy::unnecessary_wraps)]
fn only(burst: u32) -> Option<Rate> {
    Some(Rate::new(0.01, burst).unwrap())
}

async fn start(limits: Limits) -> World {
    World::bounded(AuthMode::Keys, limits).await
}

async fn connect(world: &World) -> TcpStream {
    TcpStream::connect(world.base.trim_start_matches("http://")).await.unwrap()
}

async fn all_of(mut connection: TcpStream) -> String {
    let mut text = String::new();
    connection.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn an_agent_that_asks_too_often_hears_when_it_may_again() {
    let world = start(Limits { agent: only(3), ..Limits::default() }).await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    for left in ["2", "1", "0"] {
        let answer = world.post("/breadcrumbs", &token, note("x")).await.ok();
        assert_eq!((answer.header("ratelimit-limit"), answer.header("ratelimit-remaining")), ("3", left));
    }
    let refused = world.post("/breadcrumbs", &token, note("x")).await;
    refused.problem(429, "rate_limited");
    let pause: u64 = refused.header("retry-after").parse().unwrap();
    assert!((90..=100).contains(&pause), "{pause}");
    assert_eq!(refused.header("ratelimit-remaining"), "0");
    let reset: u64 = refused.header("ratelimit-reset").parse().unwrap();
    assert!((290..=300).contains(&reset), "{reset}");

    // Nobody else pays for it, and a stream can still be opened.
    let (_, other) = world.agent(tenant, &[Role::Emitter, Role::Subscriber]).await;
    world.get("/breadcrumbs", &other).await.ok();
    let (_, follower) = world.agent(tenant, &[Role::Subscriber]).await;
    for _ in 0..3 {
        world.get("/breadcrumbs", &follower).await.ok();
    }
    world.get("/breadcrumbs", &follower).await.problem(429, "rate_limited");
    assert_eq!(world.request("GET", "/events/stream", &follower).send().await.unwrap().status(), 200);
    world.close().await;
}

#[tokio::test]
async fn a_tenant_is_bounded_as_a_whole_and_its_runners_are_not() {
    let limits = Limits { agent: only(100), tenant: only(4), runner: only(5), ..Limits::default() };
    let world = start(limits).await;
    let tenant = world.tenant().await;
    let (_, one) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, two) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    for token in [&one, &two, &one, &two] {
        world.get("/breadcrumbs", token).await.ok();
    }
    let refused = world.get("/breadcrumbs", &two).await;
    assert!(refused.problem(429, "rate_limited")["detail"].as_str().unwrap().contains("tenant"));
    let claim = json!({"runner_id": "00000000-0000-4000-8000-000000000001", "limit": 1, "lease_ms": 10_000});
    for _ in 0..5 {
        world.post("/calls/claim", &runner, claim.clone()).await.ok();
    }
    world.post("/calls/claim", &runner, claim).await.problem(429, "rate_limited");
    world.get("/breadcrumbs", &world.token(&[Role::Emitter]).await).await.ok();
    world.close().await;
}

#[tokio::test]
async fn who_tries_tokens_is_bounded_by_its_address_and_who_has_one_is_not() {
    let world = start(Limits { address: only(4), ..Limits::default() }).await;
    let token = world.token(&[Role::Emitter]).await;
    world.get("/breadcrumbs", "").await.problem(401, "unauthorized");
    world.get("/breadcrumbs", "nonsense").await.problem(401, "unauthorized");
    for _ in 0..2 {
        world.post("/auth/token", "", json!({"owner_id": "not one"})).await.problem(400, "invalid");
    }
    assert!(!world.get("/breadcrumbs", "").await.header("retry-after").is_empty());
    world.get("/breadcrumbs", "").await.problem(429, "rate_limited");
    world.post("/auth/token", "", json!({"owner_id": "not one"})).await.problem(429, "rate_limited");
    // Whoever looks after the server may be behind the same address.
    for path in ["/health", "/metrics", "/openapi.json", "/docs"] {
        world.get(path, "").await.ok();
    }
    world.get("/breadcrumbs", &token).await.ok();
    world.close().await;
}

#[tokio::test]
async fn a_body_may_be_as_long_as_the_operator_says() {
    let world = start(Limits { max_body_bytes: 1000, ..Limits::default() }).await;
    let token = world.token(&[Role::Emitter]).await;
    world.create(&token, note(&"x".repeat(200))).await;
    let refused = world.post("/breadcrumbs", &token, note(&"x".repeat(600))).await.problem(413, "too_large");
    assert_eq!(refused["limit"], 1000);
    world.close().await;
}

#[tokio::test]
async fn a_connection_too_many_is_told_so() {
    let world = start(Limits { max_connections: 2, ..Limits::default() }).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut connection = connect(&world).await;
        connection.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut first = [0; 12];
        connection.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        held.push(connection);
    }
    let mut third = connect(&world).await;
    third.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let answer = all_of(third).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"), "{answer}");
    assert!(answer.contains("application/problem+json") && answer.contains("as many connections as it takes"));

    drop(held);
    // The server notices the end of those as soon as it gets to it.
    let served = async {
        loop {
            let mut next = connect(&world).await;
            next.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
            if all_of(next).await.starts_with("HTTP/1.1 200") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), served).await.expect("there is room again");
    world.close().await;
}

#[tokio::test]
async fn who_never_ends_its_headers_is_let_go() {
    let world = start(Limits { header_time: Duration::from_millis(200), ..Limits::default() }).await;
    let mut slow = connect(&world).await;
    slow.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-One: ").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), all_of(slow)).await.expect("the connection ends");
    assert!(ended.is_empty() || ended.starts_with("HTTP/1.1 408"), "{ended}");
    world.close().await;
}
