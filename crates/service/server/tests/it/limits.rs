//! The limits of a server, and what callers above them get.

use std::time::Duration;

use rcrt_breadcrumb::{Identity, Profile, Role, Tenancy, TenantQuotas};
use rcrt_server::{AuthMode, Rate, ServerLimits};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    events::Wire,
    harness::{PATIENCE, World, note, request_for},
};

/// So many requests at once, and then none for a long time. An option, as in the limits.
#[allow(clippy::unnecessary_wraps)]
fn only(burst: u32) -> Option<Rate> {
    Some(Rate::new(0.01, burst).unwrap())
}

/// Closes no connection because of its age within a test.
fn patient() -> ServerLimits {
    let time = 10 * PATIENCE;
    ServerLimits { header_time: time, first_header_time: time, write_time: time, ..ServerLimits::default() }
}

async fn start(limits: ServerLimits) -> World {
    World::bounded(AuthMode::Keys, limits).await
}

#[tokio::test]
async fn an_agent_with_too_many_queued_calls_gets_a_time_to_retry() {
    let world = World::with_queue_limit(2).await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    for _ in 0..2 {
        world.post("/breadcrumbs", &token, request_for("echo")).await.ok();
    }
    let refused = world.post("/breadcrumbs", &token, request_for("echo")).await;
    assert_eq!(refused.problem(429, "queue_full")["limit"], 2);
    assert_eq!(refused.header("retry-after"), "1");
    world.post("/breadcrumbs", &token, note("not a call")).await.ok();
    let (_, other) = world.agent(tenant, &[Role::Emitter]).await;
    world.post("/breadcrumbs", &other, request_for("echo")).await.ok();
    world.close().await;
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
async fn an_agent_above_its_rate_gets_a_time_to_retry() {
    let world = start(ServerLimits { agent: only(3), ..ServerLimits::default() }).await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    for left in ["2", "1", "0"] {
        let answer = world.post("/breadcrumbs", &token, note("x")).await.ok();
        assert_eq!((answer.header("ratelimit-limit"), answer.header("ratelimit-remaining")), ("3", left));
    }
    let refused = world.post("/breadcrumbs", &token, note("x")).await;
    refused.problem(429, "rate_limited");
    let pause: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=100).contains(&pause), "{pause}");
    assert_eq!(refused.header("ratelimit-remaining"), "0");
    let reset: u64 = refused.header("ratelimit-reset").parse().unwrap();
    assert!((1..=300).contains(&reset), "{reset}");

    // Other agents are not affected, and a stream can still be opened.
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
async fn a_tenant_has_a_rate_that_does_not_include_its_runners() {
    let limits = ServerLimits { agent: only(100), tenant: only(4), runner: only(5), ..ServerLimits::default() };
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
async fn callers_without_a_token_have_a_rate_per_address() {
    let world = start(ServerLimits { address: only(4), ..ServerLimits::default() }).await;
    let token = world.token(&[Role::Emitter]).await;
    world.get("/breadcrumbs", "").await.problem(401, "unauthorized");
    world.get("/breadcrumbs", "nonsense").await.problem(401, "unauthorized");
    for _ in 0..2 {
        world.post("/auth/token", "", json!({"owner_id": "not one"})).await.problem(400, "invalid");
    }
    assert!(!world.get("/breadcrumbs", "").await.header("retry-after").is_empty());
    world.get("/breadcrumbs", "").await.problem(429, "rate_limited");
    world.post("/auth/token", "", json!({"owner_id": "not one"})).await.problem(429, "rate_limited");
    // The operator may use the same address.
    for path in ["/health", "/metrics", "/openapi.json", "/docs"] {
        world.get(path, "").await.ok();
    }
    world.get("/breadcrumbs", &token).await.ok();
    world.close().await;
}

#[tokio::test]
async fn the_operator_sets_the_limit_of_bodies() {
    let world = start(ServerLimits { max_body_bytes: 1000, ..ServerLimits::default() }).await;
    let token = world.token(&[Role::Emitter]).await;
    world.create(&token, note(&"x".repeat(200))).await;
    let refused = world.post("/breadcrumbs", &token, note(&"x".repeat(600))).await.problem(413, "too_large");
    assert_eq!(refused["limit"], 1000);
    world.close().await;
}

/// Sends a complete request and reads the start of its response.
async fn asked(world: &World, path: &str, token: &str) -> TcpStream {
    let mut connection = connect(world).await;
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    connection.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    connection
}

/// Sends a part of a request.
async fn half(world: &World) -> TcpStream {
    let mut connection = connect(world).await;
    connection.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-One: ").await.unwrap();
    connection
}

/// Sends the head of a token request, but not its body.
async fn without_its_body(world: &World) -> TcpStream {
    let mut connection = connect(world).await;
    let head = "POST /auth/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Expect: 100-continue\r\nContent-Length: 100\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body: the request is in progress.
    let mut asked = [0; 25];
    connection.read_exact(&mut asked).await.unwrap();
    assert!(asked.starts_with(b"HTTP/1.1 100 Continue"));
    connection
}

async fn ended(mut connection: TcpStream) {
    let end = async { while connection.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(PATIENCE, end).await.expect("the connection closes");
}

#[tokio::test]
async fn half_sent_requests_do_not_block_other_callers() {
    let world = start(ServerLimits { max_connections: 8, ..patient() }).await;
    let mut held = Vec::new();
    for _ in 0..40 {
        held.push(half(&world).await);
        // Meanwhile each other caller is served.
        drop(asked(&world, "/health/live", "").await);
    }
    // Close all above the limit.
    held.truncate(30);
    for connection in held {
        ended(connection).await;
    }
    world.close().await;
}

#[tokio::test]
async fn unsent_bodies_do_not_block_other_callers() {
    let world = start(ServerLimits { max_connections: 8, ..patient() }).await;
    let token = world.token(&[Role::Subscriber]).await;
    let following = asked(&world, "/events/stream", &token).await;
    let mut held = Vec::new();
    for _ in 0..40 {
        held.push(without_its_body(&world).await);
        drop(asked(&world, "/breadcrumbs", &token).await);
        drop(asked(&world, "/health/live", "").await);
    }
    // Close all above the limit.
    held.truncate(30);
    for connection in held {
        ended(connection).await;
    }
    drop(following);
    world.close().await;
}

#[tokio::test]
async fn a_blocked_connection_is_closed_and_an_idle_stream_is_not() {
    let world = World::start_as(|options| {
        options.limits = ServerLimits { max_connections: 2, write_time: Duration::from_millis(200), ..patient() };
        options.streams.ping_every = Duration::from_millis(600);
    })
    .await;
    let tenant = world.tenant().await;
    let (agent, token) = world.agent(tenant, &[Role::Curator]).await;
    let identity =
        Identity { owner_id: tenant, agent_id: agent.id, roles: vec![Role::Curator], profile: Profile::Main };
    let records = world.store.acting_as(identity);
    // Far more than the sockets can buffer.
    for _ in 0..24 {
        let record = json!({"title": "large", "context": {"text": "x".repeat(1024 * 1024)}});
        records.create(serde_json::from_value(record).unwrap(), None).await.unwrap();
    }
    let mut quiet = Wire::open(world.request("GET", "/events/stream?any_tags=never", &token)).await;
    let stalled = asked(&world, "/events/stream?last_event_id=0", &token).await;
    let served = async {
        loop {
            let mut next = connect(&world).await;
            next.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
            if all_of(next).await.starts_with("HTTP/1.1 200") {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, served).await.expect("the permit is free");
    for _ in 0..3 {
        assert_eq!(quiet.next().await.expect("the stream stays open").1["type"], "ping");
    }
    drop(stalled);
    world.close().await;
}

#[tokio::test]
async fn an_idle_connection_is_evicted_and_an_active_one_is_not() {
    let world = start(ServerLimits { max_connections: 3, ..patient() }).await;
    let token = world.token(&[Role::Subscriber]).await;
    let following = asked(&world, "/events/stream", &token).await;
    let (idle, half) = (asked(&world, "/events/latest", &token).await, half(&world).await);
    let _second = asked(&world, "/events/stream", &token).await;
    ended(half).await;
    let _third = asked(&world, "/events/stream", &token).await;
    ended(idle).await;
    // All are active now, so none can be evicted.
    let mut late = connect(&world).await;
    late.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let answer = all_of(late).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"), "{answer}");
    assert!(answer.contains("application/problem+json") && answer.contains("its maximum number of connections"));

    drop(following);
    // The server notices the closed connection soon.
    let served = async {
        loop {
            let mut next = connect(&world).await;
            next.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
            if all_of(next).await.starts_with("HTTP/1.1 200") {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, served).await.expect("a permit is free again");
    world.close().await;
}

#[tokio::test]
async fn connections_are_limited_per_address() {
    let world = start(ServerLimits { max_connections_per_address: 2, ..ServerLimits::default() }).await;
    let token = world.token(&[Role::Subscriber]).await;
    let held = half(&world).await;
    let _streams = (asked(&world, "/events/stream", &token).await, asked(&world, "/events/stream", &token).await);
    ended(held).await;
    let answer = all_of(connect(&world).await).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("this address has"), "{answer}");
    world.close().await;
}

#[tokio::test]
async fn concurrent_requests_of_a_tenant_are_limited_except_for_runners() {
    let world = start(ServerLimits { max_requests_per_tenant: 2, ..ServerLimits::default() }).await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Subscriber, Role::Emitter]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let first = asked(&world, "/events/stream", &token).await;
    let _second = asked(&world, "/events/stream", &token).await;
    let refused = world.get("/breadcrumbs", &token).await;
    assert!(refused.problem(429, "rate_limited")["detail"].as_str().unwrap().contains("in progress"));
    assert_eq!(refused.header("retry-after"), "1");
    let claim = json!({"runner_id": "00000000-0000-4000-8000-000000000001", "limit": 1, "lease_ms": 10_000});
    world.post("/calls/claim", &runner, claim).await.ok();
    world.get("/breadcrumbs", &world.token(&[Role::Emitter]).await).await.ok();
    drop(first);
    let served = async { while !world.get("/breadcrumbs", &token).await.status.is_success() {} };
    tokio::time::timeout(PATIENCE, served).await.expect("a permit is free again");
    world.close().await;
}

#[tokio::test]
async fn a_tenant_can_have_its_own_limit_of_concurrent_requests() {
    let world = start(ServerLimits { max_requests_per_tenant: 1, ..ServerLimits::default() }).await;
    let quotas = |most| TenantQuotas { max_requests: Some(most), ..TenantQuotas::default() };
    for (own, streams) in [(None, 1), (Some(2), 2), (Some(0), 3)] {
        let tenant = world.tenant().await;
        world.store.set_quotas(tenant, own.map(quotas).unwrap_or_default()).await.unwrap();
        let (_, token) = world.agent(tenant, &[Role::Curator]).await;
        let in_force = world.get(&format!("/tenants/{tenant}"), &token).await.ok().json()["usage"]["in_force"].clone();
        assert_eq!(
            in_force["max_requests"],
            own.map_or(json!(1), |own| if own == 0 { json!(null) } else { json!(own) })
        );
        let mut open = Vec::new();
        for _ in 0..streams {
            open.push(asked(&world, "/events/stream", &token).await);
        }
        let next = world.get("/breadcrumbs", &token).await;
        if own == Some(0) {
            next.ok();
        } else {
            next.problem(429, "rate_limited");
        }
    }
    world.close().await;
}

#[tokio::test]
async fn health_checks_have_a_rate_per_address() {
    let world = start(ServerLimits { address: only(4), ..ServerLimits::default() }).await;
    let token = world.token(&[Role::Emitter]).await;
    for path in ["/health", "/health/live", "/metrics", "/docs"] {
        world.get(path, "").await.ok();
    }
    for path in ["/health", "/health/live", "/metrics", "/docs"] {
        world.get(path, "").await.problem(429, "rate_limited");
    }
    world.get("/breadcrumbs", &token).await.ok();
    world.close().await;
}

#[tokio::test]
async fn a_connection_with_unfinished_headers_is_closed() {
    let brief = Duration::from_millis(200);
    for limits in
        [ServerLimits { header_time: brief, ..patient() }, ServerLimits { first_header_time: brief, ..patient() }]
    {
        let world = start(limits).await;
        let slow = half(&world).await;
        let ended = tokio::time::timeout(PATIENCE, all_of(slow)).await.expect("the connection closes");
        assert!(ended.is_empty() || ended.starts_with("HTTP/1.1 408"), "{ended}");
        world.close().await;
    }
}

#[test]
fn agents_and_tenants_have_rates_by_default() {
    let limits = ServerLimits::default();
    assert!(limits.agent.is_some() && limits.tenant.is_some());
}
