//! Servers that come up later, and records that are replaced during a call.

use rcrt_breadcrumb::BreadcrumbChanges;
use rcrt_executors::Executor;
use rcrt_mcp::{McpExecutor, ServerState};
use rcrt_test_servers::network::{LOOPBACK, Network};
use serde_json::json;
use tokio::net::TcpSocket;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, http};
use crate::server::{Era, Server, tool};

#[tokio::test]
async fn a_server_that_is_down_at_start_gets_its_tools_when_it_comes_up() {
    // Until it listens, connections are refused, and no other process gets the port.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((LOOPBACK, 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let fixture = Fixture::with(Network::new().inside(&format!("mcp.test:{port}"))).await;
    let mut watch = fixture.watch().await;
    fixture.create(&http("fix", port)).await;
    let status = watch.status(|status| status.state == ServerState::Error).await;
    let error = status.error.unwrap();
    assert!(error.ends_with("; check transport.url, and that the server runs"), "{error}");
    let _server = Server::on(Era::Legacy, socket.listen(100).unwrap());
    let status = watch.status(|status| status.state == ServerState::Connected).await;
    assert_eq!(status.tools.len(), 7);
    assert_eq!(fixture.run("fix__echo", json!({"text": "up"})).await.unwrap(), "up");
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_ends_where_it_began_when_the_url_is_changed_and_the_next_uses_the_new_one() {
    let (old, new) = (Server::new(Era::Legacy).await, Server::new(Era::Legacy).await);
    for server in [&old, &new] {
        server.change(|tools| tools.push(tool("hold", "Waits.")));
    }
    new.say("Use the new one.");
    let network = Network::new().inside(&format!("mcp.test:{}", old.port)).inside(&format!("mcp.test:{}", new.port));
    let fixture = Fixture::with(network).await;
    let id = fixture.add(http("fix", old.port)).await;
    let call = fixture.call("fix__hold", json!({})).await;
    let executor = McpExecutor::new(fixture.servers.clone());
    let replacing = async {
        old.saw("tools/call").await;
        let mut watch = fixture.watch().await;
        let changes =
            BreadcrumbChanges { context: Some(http("fix", new.port).context()), ..BreadcrumbChanges::default() };
        fixture.tenant.breadcrumbs.update(id, 1, changes).await.unwrap();
        watch.status(|status| status.instructions.as_deref() == Some("Use the new one.")).await;
        assert_eq!(fixture.run("fix__echo", json!({"text": "hi"})).await.unwrap(), "hi");
        assert_eq!((old.seen("tools/call").len(), new.seen("tools/call").len()), (1, 1));
        old.release();
    };
    let (output, ()) = tokio::join!(executor.execute(call, CancellationToken::new()), replacing);
    assert_eq!(output.result.unwrap(), "held");
    fixture.stop().await;
}
