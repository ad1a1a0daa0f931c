//! The era of a server is found out once, and again when the server has changed.

use axum::http::StatusCode;
use axum::response::IntoResponse;
use rcrt_breadcrumb::schema_names;
use rcrt_mcp::ServerState;
use serde_json::json;

use crate::fixture::Fixture;
use crate::server::{Era, Server};

/// The requests by which the era is found out, in order.
fn handshakes(server: &Server) -> Vec<String> {
    let all = server.seen_all();
    let methods = all.iter().filter_map(|message| message["method"].as_str());
    methods.filter(|method| matches!(*method, "server/discover" | "initialize")).map(str::to_owned).collect()
}

/// Ends the connection, and waits until there is another one.
async fn reconnected(server: &Server, fixture: &Fixture, era: Era) {
    let mut watch = fixture.watch().await;
    if era == Era::Events {
        server.end_stream();
    } else {
        fixture.run("fix__drop", json!({})).await.unwrap_err();
    }
    watch.status(|status| status.state == ServerState::Error).await;
    watch.status(|status| status.state == ServerState::Connected).await;
}

#[tokio::test]
async fn the_second_connection_begins_with_what_the_first_one_found_out() {
    for (era, first, second) in [
        (Era::Modern, vec!["server/discover"], "server/discover"),
        (Era::Legacy, vec!["server/discover", "initialize"], "initialize"),
        (Era::Events, vec!["server/discover", "initialize", "initialize", "initialize"], "initialize"),
    ] {
        let server = Server::new(era).await;
        let fixture = Fixture::with_http(server.port).await;
        assert_eq!(handshakes(&server), first, "{era:?}");
        reconnected(&server, &fixture, era).await;
        assert_eq!(handshakes(&server)[first.len()..], [second], "{era:?}");
        assert_eq!(fixture.run("fix__echo", json!({"text": "again"})).await.unwrap(), "again");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_changed_its_era_is_found_out_again() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    server.upgrade(Era::Modern);
    reconnected(&server, &fixture, Era::Legacy).await;
    assert_eq!(handshakes(&server)[2..], ["initialize", "server/discover"]);
    let status = fixture.records(schema_names::MCP_STATUS).await.remove(0).context.unwrap();
    assert_eq!(status["protocol_version"], "2026-07-28");
    reconnected(&server, &fixture, Era::Modern).await;
    assert_eq!(handshakes(&server)[4..], ["server/discover"]);
    fixture.stop().await;
}

#[tokio::test]
async fn a_failure_of_the_server_itself_does_not_change_its_era() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    let mut watch = fixture.watch().await;
    server.guard(|_, message| {
        let response = (StatusCode::SERVICE_UNAVAILABLE, "restarting");
        (message["method"] != "tools/call").then(|| response.into_response())
    });
    fixture.run("fix__drop", json!({})).await.unwrap_err();
    watch.status(|status| status.error.as_ref().is_some_and(|error| error.contains("HTTP 503"))).await;
    server.guard(|_, _| None);
    watch.status(|status| status.state == ServerState::Connected).await;
    let again = handshakes(&server).split_off(2);
    assert!(again.len() > 1 && again.iter().all(|method| method == "initialize"), "{again:?}");
    fixture.stop().await;
}
