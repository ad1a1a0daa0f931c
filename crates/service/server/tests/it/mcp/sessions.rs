//! Clients of earlier revisions, which begin with `initialize`.

use rcrt_breadcrumb::Role;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::client::{self, Messages, offer, post};
use crate::harness::World;

const VERSION: &str = "2025-11-25";

/// A session, after its handshake.
async fn begin(world: &World, token: &str, capabilities: Value) -> String {
    begin_with(world, token, capabilities).await.0
}

/// The same, and the capabilities of the server.
async fn begin_with(world: &World, token: &str, capabilities: Value) -> (String, Value) {
    let params = json!({"protocolVersion": VERSION, "capabilities": capabilities,
        "clientInfo": {"name": "a test", "version": "1"}});
    let mut messages =
        Messages::of(post(world, token, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})))
            .await;
    let mut result = messages.next().await.unwrap();
    assert_eq!(result["result"]["protocolVersion"], VERSION, "{result}");
    let session = messages.session.clone().expect("a session");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(Messages::of(in_session(world, token, &session, &initialized)).await.status, 202);
    (session, result["result"]["capabilities"].take())
}

fn in_session(world: &World, token: &str, session: &str, message: &Value) -> RequestBuilder {
    post(world, token, message).header("Mcp-Session-Id", session).header("MCP-Protocol-Version", VERSION)
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

#[tokio::test]
async fn a_session_serves_calls_and_belongs_to_one_agent() {
    let mut scene = client::scene(vec![client::tool("echo", json!({"type": "object"}))]).await;
    let session = begin(&scene.world, &scene.token, json!({})).await;
    let ask = |message: &Value| in_session(&scene.world, &scene.token, &session, message);
    let list = client::result(ask(&request("tools/list", json!({})))).await;
    assert_eq!(list["tools"][0]["name"], "echo");
    assert!(list["resultType"].is_null() && list["ttlMs"].is_u64(), "{list}");
    assert_eq!(client::result(ask(&request("ping", json!({})))).await, json!({}));

    let asking = tokio::spawn(client::result(ask(&request("tools/call", json!({"name": "echo", "arguments": {}})))));
    let claim = scene.hand.claim().await;
    scene.hand.answer(&claim, Ok(json!([1]))).await;
    let got = asking.await.unwrap();
    // Structured content must be an object before 2026-07-28.
    assert_eq!((&got["content"][0]["text"], &got["structuredContent"]), (&json!("[1]"), &Value::Null));

    // The session of another agent does not exist, here and on another server.
    let (_, other) = scene.world.agent(scene.tenant, &[Role::Curator]).await;
    let beside = scene.world.beside().await;
    for world in [&scene.world, &beside] {
        let foreign = in_session(world, &other, &session, &request("tools/list", json!({})));
        let unknown = crate::harness::answer(foreign).await.problem(404, "not_found");
        assert!(unknown["detail"].as_str().unwrap().contains("initialize"));
    }
    beside.close().await;
    let end = scene.world.request("DELETE", "/mcp", &scene.token).header("Mcp-Session-Id", &session);
    assert_eq!(end.send().await.unwrap().status(), 202);
    assert_eq!(ask(&request("tools/list", json!({}))).send().await.unwrap().status(), 404);
    let beside = scene.world.beside().await;
    let ended = in_session(&beside, &scene.token, &session, &request("tools/list", json!({})));
    assert_eq!(ended.send().await.unwrap().status(), 404);
    beside.close().await;
    scene.world.close().await;
}

/// Tasks are an extension, and revisions with sessions have none.
#[tokio::test]
async fn a_session_has_no_tasks() {
    let mut scene = client::scene(vec![client::tool("echo", json!({"type": "object"}))]).await;
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let (session, offered) = begin_with(&scene.world, &scene.token, tasks.clone()).await;
    let names: Vec<&String> = offered.as_object().unwrap().keys().collect();
    assert_eq!(names, ["completions", "prompts", "resources", "tools"]);

    let ask = |message: &Value| in_session(&scene.world, &scene.token, &session, message);
    let call = json!({"name": "echo", "arguments": {}});
    let asking = tokio::spawn(client::result(ask(&request("tools/call", call.clone()))));
    let claim = scene.hand.claim().await;
    // Without a session, a call that began later is a task already.
    let later = client::with_capabilities(&scene.world, &scene.token, "tools/call", call, tasks);
    let created = client::result(later).await;
    assert_eq!(created["resultType"], "task", "{created}");
    for method in ["tasks/get", "tasks/cancel"] {
        let mut about = request(method, json!({"taskId": created["taskId"]}));
        about["id"] = json!(8);
        let refused = client::answer(ask(&about)).await;
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    scene.hand.answer(&claim, Ok(json!("done"))).await;
    assert_eq!(asking.await.unwrap()["content"][0]["text"], "done");
    scene.world.close().await;
}

#[tokio::test]
async fn another_server_continues_a_session() {
    let mut scene = client::scene(vec![client::tool("echo", json!({"type": "object"}))]).await;
    let session = begin(&scene.world, &scene.token, json!({})).await;
    let id = scene.world.create(&scene.token, crate::harness::note("watched")).await;
    let uri = format!("breadcrumb://{id}");
    let subscribe = request("resources/subscribe", json!({"uri": uri}));
    assert_eq!(client::result(in_session(&scene.world, &scene.token, &session, &subscribe)).await, json!({}));

    // Several requests at once, of which one resumes it.
    let beside = scene.world.beside().await;
    let there = |message: &Value| in_session(&beside, &scene.token, &session, message);
    let lists = futures::future::join_all((10..18).map(|id| {
        let mut message = request("tools/list", json!({}));
        message["id"] = json!(id);
        client::answer(there(&message))
    }));
    for list in lists.await {
        assert_eq!(list["result"]["tools"][0]["name"], "echo", "{list}");
    }
    let asking = tokio::spawn(client::result(there(&request("tools/call", json!({"name": "echo", "arguments": {}})))));
    let claim = scene.hand.claim().await;
    scene.hand.answer(&claim, Ok(json!("done"))).await;
    assert_eq!(asking.await.unwrap()["content"][0]["text"], "done");

    // A stream that begins there is first notified of what it may have missed, and then of changes.
    let third = scene.world.beside().await;
    let stream = third.request("GET", "/mcp", &scene.token).header("Accept", "text/event-stream");
    let mut messages = Messages::of(stream.header("Mcp-Session-Id", &session)).await;
    for list in ["prompts", "resources"] {
        client::notified(&mut messages, &format!("notifications/{list}/list_changed")).await;
    }
    let updated = client::notified(&mut messages, "notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], json!(uri));
    let change = third.request("PATCH", &format!("/breadcrumbs/{id}"), &scene.token).header("If-Match", "1");
    crate::harness::answer(change.json(&json!({"title": "changed"}))).await.ok();
    client::notified(&mut messages, "notifications/resources/updated").await;
    for world in [beside, third] {
        world.close().await;
    }
    scene.world.close().await;
}

#[tokio::test]
async fn the_stream_of_a_session_has_its_notifications() {
    let scene = client::scene(Vec::new()).await;
    let session = begin(&scene.world, &scene.token, json!({})).await;
    let stream = scene.world.request("GET", "/mcp", &scene.token).header("Accept", "text/event-stream");
    let mut messages = Messages::of(stream.header("Mcp-Session-Id", &session)).await;
    let id = scene.world.create(&scene.token, crate::harness::note("watched")).await;
    client::notified(&mut messages, "notifications/resources/list_changed").await;
    let uri = format!("breadcrumb://{id}");
    let ask = |method: &str| in_session(&scene.world, &scene.token, &session, &request(method, json!({"uri": uri})));
    assert_eq!(client::result(ask("resources/subscribe")).await, json!({}));
    let change = scene.world.request("PATCH", &format!("/breadcrumbs/{id}"), &scene.token).header("If-Match", "1");
    crate::harness::answer(change.json(&json!({"title": "changed"}))).await.ok();
    let updated = client::notified(&mut messages, "notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], json!(uri));
    assert_eq!(client::result(ask("resources/unsubscribe")).await, json!({}));
    offer(&scene.world, scene.tenant, vec![client::tool("new", json!({"type": "object"}))]).await;
    client::notified(&mut messages, "notifications/tools/list_changed").await;
    scene.world.close().await;
}

#[tokio::test]
async fn a_notification_cancels_a_call_of_a_session() {
    let mut scene = client::scene(vec![client::tool("echo", json!({"type": "object"}))]).await;
    let mut events = client::events(&scene).await;
    let session = begin(&scene.world, &scene.token, json!({})).await;
    let ask = |message: &Value| in_session(&scene.world, &scene.token, &session, message);
    let _asking = tokio::spawn(ask(&request("tools/call", json!({"name": "echo"}))).send());
    let claim = scene.hand.claim().await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(ask(&cancelled).send().await.unwrap().status(), 202);
    client::cancelled(&mut events, claim.request.id).await;
    scene.world.close().await;
}

/// A client that cannot be answered later is asked while the call is open.
#[tokio::test]
async fn a_tool_asks_the_client_of_a_session_at_once() {
    let parameters = json!({"type": "object", "properties": {"input_responses": {"type": "object"}}});
    let mut scene = client::scene(vec![client::tool("book", parameters)]).await;
    let session = begin(&scene.world, &scene.token, json!({"elicitation": {}})).await;
    let asking = in_session(&scene.world, &scene.token, &session, &request("tools/call", json!({"name": "book"})));
    let asking = tokio::spawn(Messages::of(asking));
    let claim = scene.hand.claim().await;
    let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Which day?",
        "requestedSchema": {"type": "object", "properties": {"day": {"type": "string"}}}}});
    scene.hand.answer(&claim, Ok(json!({"resultType": "input_required", "inputRequests": {"day": form}}))).await;
    let mut messages = asking.await.unwrap();
    let asked = messages.next().await.unwrap();
    assert_eq!((&asked["method"], &asked["params"]["message"]), (&json!("elicitation/create"), &json!("Which day?")));
    let given = json!({"action": "accept", "content": {"day": "Monday"}});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": given});
    assert_eq!(in_session(&scene.world, &scene.token, &session, &answer).send().await.unwrap().status(), 202);
    let claim = scene.hand.claim().await;
    assert_eq!(claim.request.context["input"], json!({"input_responses": {"day": given}}));
    scene.hand.answer(&claim, Ok(json!("booked"))).await;
    assert_eq!(messages.next().await.unwrap()["result"]["content"][0]["text"], "booked");
    scene.world.close().await;
}
