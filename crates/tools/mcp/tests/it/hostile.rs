//! Servers that misbehave. Each is reported, and affects nothing else.

use rcrt_breadcrumb::ErrorCode;
use rcrt_mcp::{ServerState, Status};
use rcrt_test_servers::network::Network;
use rcrt_test_servers::raw;
use rcrt_test_servers::service::Service;
use serde_json::json;

use crate::fixture::{Fixture, http};
use crate::server::{Era, Server, tool};

/// The state of a server that cannot be used.
async fn error_of(port: u16) -> Status {
    let fixture = Fixture::with(Network::new().inside(&format!("mcp.test:{port}"))).await;
    let mut watch = fixture.watch().await;
    let mut config = http("bad", port);
    config.connect_timeout_ms = 2000;
    fixture.create(&config).await;
    let status = watch.status(|status| status.state == ServerState::Error).await;
    let failure = fixture.manage("mcp_list_resources", json!({"server_name": "bad"})).await.unwrap_err();
    assert!(failure.message.contains("cannot be used"), "{failure}");
    fixture.stop().await;
    status
}

#[tokio::test]
async fn garbage_is_an_error() {
    let garbage = Service::new(|_| ([("content-type", "application/json")], "<html>\u{7}not JSON")).await;
    let status = error_of(garbage.port).await;
    assert!(!status.error.unwrap().contains('\u{7}'));
    let page = Service::new(|_| ([("content-type", "text/html")], "<html>")).await;
    error_of(page.port).await;
}

#[tokio::test]
async fn a_response_of_more_than_10_mb_is_an_error() {
    let start =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"jsonrpc\": \"2.0\", \"id\": 0, \"result\": \"";
    let port = raw::floods(start, "x".repeat(1 << 16)).await;
    let error = error_of(port).await.error.unwrap();
    assert!(error.contains("larger than") || error.contains("did not respond"), "{error}");
}

#[tokio::test]
async fn a_server_that_never_responds_is_an_error() {
    let port = raw::serve(|stream| async move {
        let _open = stream;
        std::future::pending().await
    })
    .await
    .0;
    assert!(error_of(port).await.error.unwrap().contains("2000 ms"));
}

#[tokio::test]
async fn a_redirect_to_another_address_is_refused() {
    let inner = Service::ok().await;
    let location = format!("http://127.0.0.1:{}/mcp", inner.port);
    let redirects = move |_| (axum::http::StatusCode::TEMPORARY_REDIRECT, [("location", location.clone())]);
    let service = Service::new(redirects).await;
    error_of(service.port).await;
    assert!(inner.seen().is_empty());
}

#[tokio::test]
async fn a_private_address_needs_the_operator() {
    let server = Server::new(Era::Legacy).await;
    let network = Network::new();
    network.names.set("mcp.test", vec![vec![rcrt_test_servers::network::LOOPBACK]]);
    let fixture = Fixture::with(network).await;
    let mut watch = fixture.watch().await;
    fixture.create(&http("inside", server.port)).await;
    watch.status(|status| status.state == ServerState::Error).await;
    assert!(server.seen("initialize").is_empty() && server.seen("server/discover").is_empty());
    let failure = fixture.manage("mcp_list_resources", json!({"server_name": "inside"})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PermissionDenied, "{failure}");
    fixture.stop().await;
}

#[tokio::test]
async fn names_and_texts_of_strangers_are_bounded_and_collisions_are_refused() {
    let server = Server::new(Era::Legacy).await;
    server.change(|tools| {
        tools.clear();
        tools.push(tool("a b", "Has\u{1b}[31m control\u{0} characters."));
        tools.push(tool("a_b", "The same name here."));
        tools.push(tool(&"x".repeat(200), &"y".repeat(100_000)));
        tools.push(json!({"name": "schemaless"}));
        tools.push(tool("twice", "One."));
        tools.push(tool("twice", "Two."));
    });
    let fixture = Fixture::with_http(server.port).await;
    let status = fixture.records("mcp.status.v1").await.remove(0).context.unwrap();
    let refused: Vec<&str> =
        status["refused"].as_array().unwrap().iter().map(|one| one["tool"].as_str().unwrap()).collect();
    assert!(refused.contains(&"a_b") && refused.contains(&"twice"), "{refused:?}");
    let description = fixture.tool("fix__a_b").await.context.unwrap()["description"].clone();
    assert_eq!(description, "Has[31m control characters.");
    for tool in status["tools"].as_array().unwrap() {
        let name = tool.as_str().unwrap();
        assert!(name.len() <= 64, "{name}");
        let context = fixture.tool(name).await.context.unwrap();
        assert!(context["description"].as_str().unwrap().chars().count() <= 4001);
    }
    // It is called by its own name, not by the name here.
    fixture.run("fix__a_b", json!({})).await.unwrap_err();
    assert_eq!(server.seen("tools/call")[0].0["params"]["name"], "a b");
    fixture.stop().await;
}

#[tokio::test]
async fn too_many_tools_are_an_error() {
    let server = Server::new(Era::Legacy).await;
    server.change(|tools| tools.extend((0..500).map(|index| tool(&format!("t{index}"), "One of many."))));
    assert!(error_of(server.port).await.error.unwrap().contains("more than 400 tools"));
}
