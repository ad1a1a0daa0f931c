//! What a browser allows a page of another origin to do.

use rcrt_breadcrumb::Role;
use rcrt_server::{AllowedOrigins, AuthMode, Server, ServerError, ServerOptions};
use serde_json::json;
use tokio::net::TcpListener;

use crate::harness::{Answer, World, answer, key, note};

const PAGE: &str = "https://app.example.com";

async fn preflight(world: &World, origin: &str) -> Answer {
    let request = world
        .request("OPTIONS", "/breadcrumbs", "")
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "authorization, content-type, idempotency-key");
    answer(request).await
}

#[tokio::test]
async fn any_page_can_read_responses_if_all_origins_are_allowed() {
    let world = World::start_for(AuthMode::Keys, AllowedOrigins::new(&["*"]).unwrap()).await;
    let token = world.token(&[Role::Emitter]).await;
    let asked = preflight(&world, PAGE).await;
    assert_eq!(asked.status, 204);
    assert_eq!(asked.header("access-control-allow-origin"), "*");
    assert_eq!(asked.header("access-control-allow-headers"), "authorization, content-type, idempotency-key");
    assert!(asked.header("access-control-allow-methods").contains("PATCH"));
    assert!(asked.headers.get("access-control-allow-credentials").is_none());

    let written =
        answer(world.request("POST", "/breadcrumbs", &token).header("Origin", PAGE).json(&note("a"))).await.ok();
    assert_eq!(written.header("access-control-allow-origin"), "*");
    assert!(written.header("access-control-expose-headers").contains("ETag"));
    // A page must be able to read the reason of a refusal.
    let refused = answer(world.request("GET", "/breadcrumbs", "").header("Origin", PAGE)).await;
    refused.problem(401, "unauthorized");
    assert_eq!(refused.header("access-control-allow-origin"), "*");
    // A program that is not a browser gets none of these headers, and OPTIONS alone is not a method
    // of a record.
    assert!(world.get("/health", "").await.headers.get("access-control-allow-origin").is_none());
    answer(world.request("OPTIONS", "/breadcrumbs", "").header("Origin", PAGE))
        .await
        .problem(405, "method_not_allowed");
    world.close().await;
}

#[tokio::test]
async fn only_pages_of_the_listed_origins_can_read_responses() {
    let named = ["http://localhost:8082", "chrome-extension://abcdef"];
    let world = World::start_for(AuthMode::Open, AllowedOrigins::new(&named).unwrap()).await;
    for origin in named {
        assert_eq!(preflight(&world, origin).await.header("access-control-allow-origin"), origin);
    }
    for origin in [PAGE, "null", "http://localhost", "http://localhost:8082.example.com", "https://localhost:8082"] {
        let refused = preflight(&world, origin).await;
        assert!(refused.headers.get("access-control-allow-origin").is_none(), "{origin}");
        let given = answer(world.request("POST", "/auth/token", "").header("Origin", origin).json(&json!({}))).await;
        assert!(given.headers.get("access-control-allow-origin").is_none(), "{origin}");
    }
    world.close().await;
}

#[tokio::test]
async fn no_page_can_read_responses_by_default() {
    let world = World::start().await;
    assert!(preflight(&world, PAGE).await.headers.get("access-control-allow-origin").is_none());
    world.close().await;
}

#[tokio::test]
async fn open_auth_refuses_the_wildcard_origin() {
    let world = World::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origins = AllowedOrigins::new(&["*"]).unwrap();
    let options = ServerOptions { origins, ..ServerOptions::new(listener, AuthMode::Open, key()) };
    let refused = Server::new(options, world.store.clone());
    assert!(matches!(refused, Err(ServerError::AnyOriginWithOpenAuth)));
    world.close().await;
}

#[test]
fn an_invalid_origin_is_refused_with_an_example() {
    for (text, right) in [
        ("https://app.example.com/", "https://app.example.com"),
        ("https://App.example.com", "https://app.example.com"),
        ("https://app.example.com:443", "https://app.example.com"),
        ("http://localhost:8082/dashboard?x", "http://localhost:8082"),
        ("app.example.com", "https://app.example.com"),
        ("chrome-extension://abc/page", "chrome-extension://abc"),
        ("", "https://app.example.com"),
    ] {
        let error = AllowedOrigins::new(&[text]).unwrap_err();
        assert!(matches!(&error, ServerError::NoOrigin { right: said, .. } if said == right), "{text}: {error}");
    }
}
