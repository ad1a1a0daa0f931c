//! Who can write the records of servers and of their tools.

use rcrt_breadcrumb::{BreadcrumbChanges, Role, StoreError, schema_names};
use rcrt_mcp::server_record;
use rcrt_test_servers::network::Network;
use serde_json::json;

use crate::fixture::{Fixture, http};
use crate::server::{Era, Server};

#[tokio::test]
async fn only_curators_write_servers_and_their_tools() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    let emitter = fixture.agent(&[Role::Emitter, Role::Subscriber]).await;
    let forbidden =
        |result: Result<(), StoreError>| assert!(matches!(result, Err(StoreError::Forbidden(_))), "{result:?}");
    forbidden(emitter.create(server_record(&http("mine", 1)), None).await.map(drop));
    let implementation = json!({"type": "mcp", "server": "fix", "tool": "echo", "definition_hash": "0"});
    let forged = rcrt_breadcrumb::NewBreadcrumb {
        title: "forged".into(),
        schema_name: Some(schema_names::TOOL_V1.into()),
        context: json!({"name": "forged", "implementation": implementation}).as_object().unwrap().clone(),
        ..Default::default()
    };
    forbidden(emitter.create(forged.clone(), None).await.map(drop));
    // Nor by way of another schema.
    let note = rcrt_breadcrumb::NewBreadcrumb { schema_name: Some("note.v1".into()), ..forged.clone() };
    let note = emitter.create(note, None).await.unwrap();
    let becomes = BreadcrumbChanges { schema_name: Some(schema_names::TOOL_V1.into()), ..Default::default() };
    forbidden(emitter.update(note.id, 1, becomes).await.map(drop));
    for schema in [schema_names::MCP_SERVER, schema_names::MCP_STATUS, schema_names::TOOL_V1] {
        let record = fixture.records(schema).await.remove(0);
        forbidden(emitter.delete(record.id, None).await);
        let changes = BreadcrumbChanges { title: Some("changed".into()), ..Default::default() };
        forbidden(emitter.update(record.id, record.version, changes).await.map(drop));
    }
    // A tool that runs for an agent has that agent's rights, also for a curator.
    let curator = fixture.agent(&[Role::Curator]).await;
    let for_curator = fixture.runner.on_behalf_of(fixture.tenant.agent).unwrap();
    assert!(for_curator.is_curator().await.unwrap());
    forbidden(for_curator.create(server_record(&http("mine", 1)), None).await.map(drop));
    curator.create(server_record(&http("mine", 1)), None).await.unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn the_oldest_server_has_the_name() {
    let (first, second) = (Server::new(Era::Legacy).await, Server::new(Era::Legacy).await);
    let network =
        Network::new().inside(&format!("mcp.test:{}", first.port)).inside(&format!("mcp.test:{}", second.port));
    let fixture = Fixture::with(network).await;
    let id = fixture.add(http("fix", first.port)).await;
    let mut watch = fixture.watch().await;
    fixture.create(&http("FIX", second.port)).await;
    fixture.run("fix__echo", json!({})).await.unwrap();
    assert!(second.seen("initialize").is_empty());
    fixture.tenant.breadcrumbs.delete(id, None).await.unwrap();
    watch.status(|status| status.server == "FIX").await;
    assert!(!second.seen("initialize").is_empty());
    fixture.stop().await;
}
