//! No text of a server has a secret that the server got, wherever the text ends up.

use axum::response::IntoResponse;
use rcrt_breadcrumb::{BreadcrumbChanges, NewSecret, schema_names};
use rcrt_mcp::ServerState;
use rcrt_test_servers::network::Network;
use serde_json::{Value, json};

use crate::fixture::{Fixture, config};
use crate::server::{Era, Server, tool};

const SECRET: &str = "the-secret-value";

/// A server that got a readable secret, which the egress gate does not redact, and that returns it.
async fn talkative() -> (Server, Fixture) {
    let server = Server::new(Era::Legacy).await;
    // It is also not found if it is cut in two, or divided by a character that is removed.
    let cut = format!("{}{SECRET}", "x".repeat(3990));
    server.say(&format!("It is {SECRET}. It is the-secret\u{7}-value. {cut}"));
    server.change(|tools| {
        tools[0] = tool("echo", &format!("Uses {SECRET}."));
        tools[1]["inputSchema"]["properties"]["text"]["default"] = SECRET.into();
    });
    let fixture = Fixture::with(Network::new().inside(&format!("mcp.test:{}", server.port))).await;
    let secret = NewSecret { readable: true, ..NewSecret::new("KEY", SECRET) };
    let secret = fixture.tenant.breadcrumbs.create_secret(secret).await.unwrap();
    let mut watch = fixture.watch().await;
    let transport = json!({
        "type": "http",
        "url": format!("http://mcp.test:{}/mcp", server.port),
        "headers": {"x-key": "${KEY}"},
    });
    let id = fixture.create(&config(json!({"name": "fix", "transport": transport}))).await;
    fixture.tenant.breadcrumbs.grant_secret(secret.id, id).await.unwrap();
    watch.status(|status| status.state == ServerState::Connected).await;
    (server, fixture)
}

fn assert_redacted(what: &str, value: &Value) {
    let text = value.to_string();
    assert!(text.contains("[secret KEY]"), "{what}: {text}");
    assert!(!text.contains(SECRET) && !text.contains("the-secret-v"), "{what}: {text}");
}

#[tokio::test]
async fn resources_prompts_and_errors_have_no_secret() {
    let (_server, fixture) = talkative().await;
    let read = fixture.manage("mcp_read_resource", json!({"server_name": "fix", "uri": "doc://said"})).await.unwrap();
    assert!(!read.to_string().contains(SECRET), "{read}");
    let prompt = fixture.manage("mcp_get_prompt", json!({"server_name": "fix", "prompt_name": "greet"})).await.unwrap();
    assert!(!prompt.to_string().contains(SECRET), "{prompt}");
    let failing = json!({"server_name": "fix", "prompt_name": "fail"});
    let failure = fixture.manage("mcp_get_prompt", failing).await.unwrap_err();
    assert_redacted("an error", &failure.message.into());
    fixture.stop().await;
}

#[tokio::test]
async fn definitions_and_instructions_have_no_secret() {
    let (server, fixture) = talkative().await;
    let status = fixture.records(schema_names::MCP_STATUS).await.remove(0).context.unwrap();
    assert_redacted("the state", &Value::Object(status));
    for name in ["fix__echo", "fix__fail"] {
        assert_redacted(name, &Value::Object(fixture.tool(name).await.context.unwrap()));
    }
    // A changed definition that waits has none either.
    let mut watch = fixture.watch().await;
    server.change(|tools| tools[0] = tool("echo", &format!("Still uses {SECRET}.")));
    fixture.manage("mcp_get_service_details", json!({"server_name": "fix", "refresh": true})).await.unwrap();
    watch.status(|status| !status.waiting.is_empty()).await;
    let change = fixture.records(schema_names::MCP_CHANGE).await.remove(0).context.unwrap();
    assert_redacted("a change", &Value::Object(change));
    fixture.stop().await;
}

#[tokio::test]
async fn the_error_of_a_server_that_cannot_be_used_has_no_secret() {
    let (server, fixture) = talkative().await;
    let mut watch = fixture.watch().await;
    server.guard(|_, message| {
        let error = json!({"code": -32000, "message": format!("bad key {SECRET}")});
        let reply = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        Some(([("content-type", "application/json")], reply.to_string()).into_response())
    });
    let failed = fixture.manage("mcp_get_service_details", json!({"server_name": "fix", "refresh": true})).await;
    assert_redacted("a failure", &failed.unwrap_err().message.into());
    // The record changes, so the server is connected again.
    let record = fixture.records(schema_names::MCP_SERVER).await.remove(0);
    let changes = BreadcrumbChanges { context: record.context, ..BreadcrumbChanges::default() };
    fixture.tenant.breadcrumbs.update(record.id, record.version, changes).await.unwrap();
    let status = watch.status(|status| status.state == ServerState::Error).await;
    assert_redacted("the state", &status.error.unwrap().into());
    fixture.stop().await;
}
