//! Servers of streamable HTTP, of both eras.

use std::sync::{Arc, Mutex};

use axum::response::IntoResponse;
use rcrt_breadcrumb::{BreadcrumbChanges, ErrorCode, NewSecret, ToolDefinition, ToolSource, schema_names};
use rcrt_executors::{Executor, ProgressSink};
use rcrt_mcp::{McpExecutor, ServerState};
use rcrt_test_servers::network::Network;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, config, http};
use crate::server::{Era, Server, tool};

#[tokio::test]
async fn tools_of_both_eras_are_registered_and_called() {
    for (era, protocol) in [(Era::Legacy, "2025-06-18"), (Era::Modern, "2026-07-28"), (Era::Events, "2024-11-05")] {
        let server = Server::new(era).await;
        let fixture = Fixture::with_http(server.port).await;
        let status = fixture.records(schema_names::MCP_STATUS).await.remove(0).context.unwrap();
        assert_eq!(status["protocol_version"], protocol);
        assert_eq!(status["instructions"], "Use it well.");
        assert_eq!(status["tools"].as_array().unwrap().len(), 7);
        let record = fixture.tool("fix__echo").await;
        let definition =
            ToolDefinition::read(schema_names::TOOL_V1, record.context.as_ref().unwrap(), None, None).unwrap();
        assert_eq!(definition.implementation.source(), ToolSource::Mcp("fix".into()));
        assert_eq!(definition.limits.timeout_ms, 60_000);
        assert_eq!(definition.input_schema.get("$schema"), None);
        assert_eq!(fixture.run("fix__echo", json!({"text": "hi"})).await.unwrap(), "hi");
        assert_eq!(fixture.run("fix__structured", json!({})).await.unwrap(), json!({"n": 7}));
        let failure = fixture.run("fix__fail", json!({"text": "that"})).await.unwrap_err();
        assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::ExecutionFailed, "cannot do that"));
        let parts = fixture.run("fix__picture", json!({})).await.unwrap();
        assert_eq!(parts["content"][1], json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}));
        assert_eq!(parts["content"][2]["type"], "resource_link");
        fixture.stop().await;
    }
}

#[derive(Default)]
struct Reports(Mutex<Vec<(Option<f64>, String)>>);

impl ProgressSink for Reports {
    fn report(&self, fraction: Option<f64>, message: &str) {
        self.0.lock().unwrap().push((fraction, message.to_owned()));
    }
}

#[tokio::test]
async fn progress_is_reported_and_a_cancelled_call_is_cancelled_on_the_server() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    let reports = Arc::new(Reports::default());
    let mut call = fixture.call("fix__progress", json!({})).await;
    call.progress = reports.clone();
    assert_eq!(fixture.execute(call).await.result.unwrap(), "done");
    let reported = reports.0.lock().unwrap().clone();
    assert!(reported.is_empty() || reported == [(Some(0.5), "half".to_owned())], "{reported:?}");

    let cancelled = CancellationToken::new();
    let call = fixture.call("fix__wait", json!({})).await;
    let executor = McpExecutor::new(fixture.servers.clone());
    let running = executor.execute(call, cancelled.clone());
    let cancelling = async {
        while server.seen("tools/call").iter().all(|(message, _)| message["params"]["name"] != "wait") {
            tokio::task::yield_now().await;
        }
        cancelled.cancel();
    };
    let (output, ()) = tokio::join!(running, cancelling);
    assert_eq!(output.result.unwrap_err().code, ErrorCode::Cancelled);
    let call = server.seen("tools/call").pop().unwrap().0;
    assert_eq!(server.saw("notifications/cancelled").await["params"]["requestId"], call["id"]);
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_with_a_timeout_and_one_without_an_answer_may_be_repeated_only_if_allowed() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    let mut call = fixture.call("fix__wait", json!({})).await;
    call.limits.timeout_ms = 300;
    assert_eq!(fixture.execute(call).await.result.unwrap_err().code, ErrorCode::Timeout);
    let failure = fixture.run("fix__drop", json!({})).await.unwrap_err();
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, false), "{failure}");
    // The next call gets another connection.
    assert_eq!(fixture.run("fix__echo", json!({"text": "again"})).await.unwrap(), "again");
    fixture.stop().await;
}

#[tokio::test]
async fn a_repeat_needs_the_record_and_the_server_and_annotations_need_trust() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with(Network::new().inside(&format!("mcp.test:{}", server.port))).await;
    let url = format!("http://mcp.test:{}/mcp", server.port);
    let context = |more: Value| {
        let mut context = json!({"transport": {"type": "http", "url": url}});
        context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config(context)
    };
    fixture.add(context(json!({"name": "plain", "max_attempts": 3}))).await;
    fixture.add(context(json!({"name": "trusted", "trust_annotations": true}))).await;
    let part = async |tool: &str, part: &str| fixture.tool(tool).await.context.unwrap()[part].clone();
    assert_eq!(part("plain__structured", "limits").await["max_attempts"], 3);
    assert_eq!(part("plain__echo", "limits").await["max_attempts"], 1);
    assert_eq!(part("trusted__structured", "limits").await["max_attempts"], 1);
    let plain = part("plain__structured", "annotations").await;
    assert_eq!(
        plain,
        json!({"title": "Structured", "read_only": false, "destructive": true, "idempotent": false, "open_world": true})
    );
    assert_eq!(part("trusted__structured", "annotations").await["read_only"], true);
    fixture.stop().await;
}

#[tokio::test]
async fn a_schema_keeps_the_version_that_is_spoken_here_and_no_other() {
    const SPOKEN: &str = "https://json-schema.org/draft/2020-12/schema";
    let server = Server::new(Era::Legacy).await;
    server.change(|tools| {
        let mut declares = tool("declares", "Declares the version.");
        declares["inputSchema"]["$schema"] = SPOKEN.into();
        declares["outputSchema"] = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"});
        tools.push(declares);
    });
    let fixture = Fixture::with_http(server.port).await;
    let definition = fixture.tool("fix__declares").await.context.unwrap()["definition"].clone();
    assert_eq!(definition["inputSchema"]["$schema"], SPOKEN);
    assert_eq!(definition["outputSchema"], json!({"type": "object"}));
    fixture.stop().await;
}

#[tokio::test]
async fn hints_of_a_server_only_tighten_rules_unless_its_record_trusts_them() {
    let server = Server::new(Era::Legacy).await;
    server.change(|tools| {
        tools.clear();
        for (name, hints) in [
            ("harmless", json!({"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false})),
            ("contradicts", json!({"readOnlyHint": true, "destructiveHint": true, "idempotentHint": false})),
        ] {
            let mut described = tool(name, "Has hints.");
            described["annotations"] = hints;
            tools.push(described);
        }
    });
    let fixture = Fixture::with(Network::new().inside(&format!("mcp.test:{}", server.port))).await;
    for (name, trusted) in [("plain", false), ("trusted", true)] {
        let mut config = http(name, server.port);
        (config.trust_annotations, config.max_attempts) = (trusted, 3);
        fixture.add(config).await;
    }
    let strict = json!({"read_only": false, "destructive": true, "idempotent": false, "open_world": true});
    let harmless = json!({"read_only": true, "destructive": false, "idempotent": false, "open_world": false});
    for (name, expected, attempts) in [
        ("plain__harmless", &strict, 3),
        ("plain__contradicts", &strict, 1),
        ("trusted__harmless", &harmless, 3),
        ("trusted__contradicts", &strict, 1),
    ] {
        let context = fixture.tool(name).await.context.unwrap();
        assert_eq!(&context["annotations"], expected, "{name}");
        assert_eq!(context["limits"]["max_attempts"], attempts, "{name}");
    }
    fixture.stop().await;
}

#[tokio::test]
async fn only_allowed_tools_are_registered_and_a_change_of_the_record_applies() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with(Network::new().inside(&format!("mcp.test:{}", server.port))).await;
    let mut changed = http("fix", server.port);
    changed.allowed_tools = Some(vec!["echo".into()]);
    changed.denied_tools = vec!["echo".into()];
    let id = fixture.add(changed.clone()).await;
    assert_eq!(fixture.records(schema_names::TOOL_V1).await.len(), 1);
    changed.allowed_tools = None;
    let mut watch = fixture.watch().await;
    let changes = BreadcrumbChanges { context: Some(changed.context()), ..BreadcrumbChanges::default() };
    fixture.tenant.breadcrumbs.update(id, 1, changes).await.unwrap();
    let status = watch.status(|status| status.tools.len() == 6).await;
    assert!(!status.tools.contains(&"fix__echo".to_owned()));
    // Its record stays, retired.
    assert_eq!(fixture.records(schema_names::TOOL_RETIRED).await.len(), 1);
    fixture.tenant.breadcrumbs.delete(id, None).await.unwrap();
    watch.deleted(schema_names::MCP_STATUS).await;
    for schema in [schema_names::TOOL_V1, schema_names::TOOL_RETIRED, schema_names::MCP_STATUS] {
        assert!(fixture.records(schema).await.is_empty(), "{schema}");
    }
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_is_down_affects_no_other_and_is_tried_again() {
    let server = Server::new(Era::Legacy).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    let network = Network::new().inside(&format!("mcp.test:{}", server.port)).inside(&format!("mcp.test:{port}"));
    drop(closed);
    let fixture = Fixture::with(network).await;
    let mut watch = fixture.watch().await;
    fixture.create(&http("down", port)).await;
    fixture.create(&http("fix", server.port)).await;
    let mut down = false;
    let mut up = false;
    while !(down && up) {
        let status = watch.status(|_| true).await;
        down |= status.server == "down" && status.state == ServerState::Error;
        up |= status.server == "fix" && status.state == ServerState::Connected;
    }
    assert_eq!(fixture.run("fix__echo", json!({"text": "up"})).await.unwrap(), "up");
    fixture.stop().await;
}

#[tokio::test]
async fn a_secret_is_sent_to_its_host_and_must_be_granted() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with(Network::new().inside(&format!("mcp.test:{}", server.port))).await;
    let secret = NewSecret {
        hosts: vec![format!("mcp.test:{}", server.port)],
        ..NewSecret::new("DOCS_TOKEN", "the-secret-value")
    };
    let secret = fixture.tenant.breadcrumbs.create_secret(secret).await.unwrap();
    let mut watch = fixture.watch().await;
    let url = format!("http://mcp.test:{}/mcp", server.port);
    let auth = json!({"type": "bearer", "secret": "DOCS_TOKEN"});
    let id =
        fixture.create(&config(json!({"name": "docs", "transport": {"type": "http", "url": url, "auth": auth}}))).await;
    let status = watch.status(|status| status.state == ServerState::Error).await;
    let error = status.error.unwrap();
    assert!(error.contains(&format!("rcrt secret grant DOCS_TOKEN {id}")), "{error}");
    assert!(server.seen("initialize").is_empty());
    fixture.tenant.breadcrumbs.grant_secret(secret.id, id).await.unwrap();
    watch.status(|status| status.state == ServerState::Connected).await;
    assert_eq!(server.seen("initialize")[0].1.as_deref(), Some("Bearer the-secret-value"));
    // A server that returns it does not get it into a result.
    assert_ne!(fixture.run("docs__echo", json!({"text": "the-secret-value"})).await.unwrap(), "the-secret-value");
    fixture.stop().await;
}

/// A server that forgot its sessions, because it was started again.
#[tokio::test]
async fn a_call_in_a_forgotten_session_begins_a_new_one() {
    let server = Server::new(Era::Legacy).await;
    let known = Arc::new(Mutex::new("first".to_owned()));
    let current = known.clone();
    server.guard(move |headers, message| {
        let known = current.lock().unwrap().clone();
        if message["method"] == "initialize" {
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fixture", "version": "1.0"}});
            let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
            let headers = [("content-type", "application/json".to_owned()), ("mcp-session-id", known)];
            return Some((headers, reply).into_response());
        }
        if message["method"] == "tools/call" && message["params"]["arguments"]["text"] == "without an id" {
            return Some(refusal("Parse error"));
        }
        let is_known = headers.get("mcp-session-id").is_some_and(|id| id.as_bytes() == known.as_bytes());
        (!is_known).then(|| refusal("Bad Request: No valid session ID provided"))
    });
    let fixture = Fixture::with_http(server.port).await;
    assert_eq!(fixture.run("fix__echo", json!({"text": "hi"})).await.unwrap(), "hi");
    "second".clone_into(&mut known.lock().unwrap());
    assert_eq!(fixture.run("fix__echo", json!({"text": "again"})).await.unwrap(), "again");
    assert_eq!(server.seen("initialize").len(), 2);
    // Any other error without the request's id ends the call too.
    let failure = fixture.run("fix__echo", json!({"text": "without an id"})).await.unwrap_err();
    assert!(failure.message.contains("Parse error"), "{failure}");
    fixture.stop().await;
}

fn refusal(text: &str) -> axum::response::Response {
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": text}}).to_string();
    (axum::http::StatusCode::BAD_REQUEST, [("content-type", "application/json")], error).into_response()
}
