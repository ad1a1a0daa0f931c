//! Lists of tools are read again.

use std::time::Duration;

use rcrt_mcp::Settings;
use rcrt_test_servers::network::Network;
use serde_json::json;

use crate::fixture::{FIRST_PAUSE, Fixture, helper, http};
use crate::server::{Era, Server, tool};

/// Adds a tool on the server.
fn add(server: &Server) {
    server.change(|tools| tools.push(tool("new", "Is new.")));
}

/// A server with these settings, to which a tool is added without an announcement. Returns when it
/// is registered.
async fn is_found(server: &Server, change: impl FnOnce(Settings) -> Settings) {
    let network = Network::new().inside(&format!("mcp.test:{}", server.port));
    let fixture = Fixture::with_settings(network, change).await;
    fixture.add(http("fix", server.port)).await;
    let mut watch = fixture.watch().await;
    add(server);
    watch.status(|status| status.tools.contains(&"fix__new".to_owned())).await;
    fixture.stop().await;
}

#[tokio::test]
async fn tools_are_listed_again_when_the_server_announces_a_change() {
    for era in [Era::Legacy, Era::Events, Era::Modern] {
        let server = Server::new(era).await;
        server.announces_changes();
        server.change(|tools| tools.push(tool("announce", "Announces a change.")));
        let fixture = Fixture::with_http(server.port).await;
        let mut watch = fixture.watch().await;
        add(&server);
        match era {
            // Without an open stream, it can be announced in a response only.
            Era::Legacy => drop(fixture.run("fix__announce", json!({})).await.unwrap()),
            Era::Events | Era::Modern => server.announce().await,
        }
        watch.status(|status| status.tools.contains(&"fix__new".to_owned())).await;
        assert_eq!(server.seen("subscriptions/listen").len(), usize::from(era == Era::Modern));
        fixture.stop().await;
    }
}

#[tokio::test]
async fn tools_are_listed_again_when_the_list_expires() {
    let server = Server::new(Era::Modern).await;
    server.list_is_valid(1);
    is_found(&server, |settings| Settings { shortest_refresh: FIRST_PAUSE, ..settings }).await;
}

#[tokio::test]
async fn tools_are_listed_again_every_five_minutes() {
    // Its lists do not expire.
    let server = Server::new(Era::Legacy).await;
    is_found(&server, |settings| {
        assert_eq!(settings.refresh_every, Duration::from_mins(5));
        Settings { refresh_every: FIRST_PAUSE, ..settings }
    })
    .await;
    assert_eq!(Settings::new(helper(), "mcp".into()).shortest_refresh, Duration::from_secs(30));
}
