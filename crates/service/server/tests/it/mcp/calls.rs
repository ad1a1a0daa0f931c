//! Calls of tools.

use rcrt_breadcrumb::{
    AllowedTools, ErrorCode, NewAgent, NewBreadcrumb, Profile, Registration, Role, Tenancy, ToolFailure, ToolResponse,
};
use serde_json::{Value, json};

use super::client::{self, Messages, answer, error, modern, result, with_capabilities};
use crate::harness::World;
use crate::invoke::{Hand, Scene};

fn call(scene: &Scene, tool: &str, arguments: Value) -> reqwest::RequestBuilder {
    modern(&scene.world, &scene.token, "tools/call", json!({"name": tool, "arguments": arguments}))
}

async fn echo() -> Scene {
    client::scene(vec![client::tool("echo", json!({"type": "object"}))]).await
}

/// The result for an output.
async fn result_of(scene: &mut Scene, output: Result<Value, ToolFailure>) -> Value {
    let asking = tokio::spawn(result(call(scene, "echo", json!({}))));
    let claim = scene.hand.claim().await;
    scene.hand.answer(&claim, output).await;
    asking.await.unwrap()
}

#[tokio::test]
async fn a_call_is_a_request_in_the_queue_and_its_output_the_result() {
    let mut scene = echo().await;
    let traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let params = json!({"name": "echo", "arguments": {"say": "hi"}, "_meta": {"traceparent": traced}});
    let asking = tokio::spawn(result(modern(&scene.world, &scene.token, "tools/call", params)));
    let claim = scene.hand.claim().await;
    let context = &claim.request.context;
    assert_eq!((&context["tool"], &context["input"]), (&json!("echo"), &json!({"say": "hi"})));
    assert_eq!((&context["traceparent"], context.get("debug")), (&json!(traced), None));
    assert!(context["session"].as_str().unwrap().starts_with("mcp-"));
    scene.hand.answer(&claim, Ok(json!({"said": "hi"}))).await;
    let got = asking.await.unwrap();
    assert_eq!(got["structuredContent"], json!({"said": "hi"}));
    assert_eq!(got["content"], json!([{"type": "text", "text": "{\"said\":\"hi\"}"}]));
    assert_eq!((&got["isError"], &got["resultType"]), (&json!(false), &json!("complete")));

    let text = result_of(&mut scene, Ok(json!("plain"))).await;
    assert_eq!((&text["content"][0]["text"], &text["structuredContent"]), (&json!("plain"), &Value::Null));
    let list = result_of(&mut scene, Ok(json!([1, 2]))).await;
    assert_eq!(list["structuredContent"], json!([1, 2]));
    // What a tool writes in the form of the protocol is passed on.
    let blocks =
        json!([{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}, {"type": "text", "text": "a dot"}]);
    let own = result_of(&mut scene, Ok(json!({"content": blocks}))).await;
    assert_eq!((&own["content"], &own["structuredContent"]), (&blocks, &Value::Null));
    let similar = result_of(&mut scene, Ok(json!({"content": "no list"}))).await;
    assert_eq!(similar["structuredContent"], json!({"content": "no list"}));
    scene.world.close().await;
}

#[tokio::test]
async fn a_failure_is_a_result_and_an_unknown_tool_an_error() {
    let mut scene = echo().await;
    let failure = ToolFailure::new(ErrorCode::ExecutionFailed, "no luck").retryable(true);
    let failed = result_of(&mut scene, Err(failure)).await;
    assert_eq!((&failed["isError"], &failed["content"][0]["text"]), (&json!(true), &json!("ExecutionFailed: no luck")));
    let error_of =
        json!({"error_code": "ExecutionFailed", "error": "no luck", "is_retryable": true, "error_details": null});
    assert_eq!((&failed["structuredContent"], &failed["_meta"]["rcrt/error"]), (&error_of, &error_of));

    let (status, refused) = error(call(&scene, "ecko", json!({}))).await;
    assert_eq!((status, &refused["code"], &refused["data"]["nearest"]), (200, &json!(-32602), &json!(["echo"])));
    // A reader cannot write requests: the model reads why.
    let (_, reader) = scene.world.agent(scene.tenant, &[Role::Subscriber]).await;
    let denied = result(modern(&scene.world, &reader, "tools/call", json!({"name": "echo"}))).await;
    assert!(denied["content"][0]["text"].as_str().unwrap().starts_with("PermissionDenied: "), "{denied}");
    scene.world.close().await;
}

/// The tools are in several parts of the catalog.
#[tokio::test]
async fn a_call_of_a_tool_that_is_not_allowed_names_similar_ones() {
    let tool = |number| Registration {
        description: "x".repeat(3000),
        ..client::tool(&format!("weather_{number}"), json!({"type": "object"}))
    };
    let mut scene = client::scene((0..200).map(tool).collect()).await;
    let allowed = AllowedTools { names: vec!["weather_10".into()], ..AllowedTools::default() };
    let (name, roles) = ("caller".to_owned(), vec![Role::Caller]);
    let agent = NewAgent { name, roles, profile: Profile::Main, tools: Some(allowed) };
    let caller = scene.world.store.create_agent(scene.tenant, None, agent).await.unwrap().agent;
    let token = scene.world.token_of(scene.tenant, caller.id, Role::Caller);
    for denied in ["weather_11", "weather_12", "weather_13", "weather_14"] {
        let (_, refused) = error(modern(&scene.world, &token, "tools/call", json!({"name": denied}))).await;
        assert_eq!(refused["data"]["nearest"], json!(["weather_10"]), "{refused}");
    }
    let asking = tokio::spawn(result(modern(&scene.world, &token, "tools/call", json!({"name": "weather_10"}))));
    let claim = scene.hand.claim().await;
    scene.hand.answer(&claim, Ok(json!({"rain": false}))).await;
    assert_eq!(asking.await.unwrap()["structuredContent"], json!({"rain": false}));
    scene.world.close().await;
}

/// Clients check every `structuredContent` against the schema of the output.
#[tokio::test]
async fn an_error_of_a_tool_with_an_output_schema_has_no_structured_content() {
    let schema = Some(json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}));
    let echo = Registration { output_schema: schema, ..client::tool("echo", json!({"type": "object"})) };
    let mut scene = client::scene(vec![echo]).await;
    let failed = result_of(&mut scene, Err(ToolFailure::new(ErrorCode::Timeout, "too slow"))).await;
    assert_eq!(
        (&failed["structuredContent"], &failed["_meta"]["rcrt/error"]["error_code"]),
        (&Value::Null, &json!("Timeout"))
    );
    let large = result_of(&mut scene, Ok(large())).await;
    assert_eq!(large["structuredContent"]["type"], "large_result");
    scene.world.close().await;
}

fn large() -> Value {
    json!({"type": "large_result", "text": "| # | Heading |", "kind": "text", "characters": 90_000, "truncated": false,
        "parts": 2, "key": "session/s 1/tool-echo-1", "part_prefix": "session/s 1/tool-echo-1-chunk"})
}

#[tokio::test]
async fn a_large_result_links_to_its_parts() {
    let readers = "get_from_working_memory";
    let tools = vec![client::tool("echo", json!({"type": "object"})), client::tool(readers, json!({"type": "object"}))];
    let mut scene = client::scene(tools).await;
    let got = result_of(&mut scene, Ok(large())).await;
    let uri = "memory:///session/s%201/tool-echo-1-chunk2";
    assert_eq!(got["content"][0]["text"], "| # | Heading |");
    assert_eq!((&got["content"][2]["type"], &got["content"][2]["uri"]), (&json!("resource_link"), &json!(uri)));
    assert_eq!(got["structuredContent"], Value::Null);
    let asking = tokio::spawn(result(modern(&scene.world, &scene.token, "resources/read", json!({"uri": uri}))));
    let claim = scene.hand.claim().await;
    assert_eq!(claim.request.context["tool"], readers);
    assert_eq!(claim.request.context["input"], json!({"key": "session/s 1/tool-echo-1-chunk2"}));
    scene.hand.answer(&claim, Ok(json!("the second part"))).await;
    let expected = json!([{"uri": uri, "mimeType": "text/plain", "text": "the second part"}]);
    assert_eq!(asking.await.unwrap()["contents"], expected);
    scene.world.close().await;
}

#[tokio::test]
async fn progress_is_notified_before_the_result() {
    let mut scene = echo().await;
    let (caller, token) = scene.world.agent(scene.tenant, &[Role::Caller]).await;
    let params = json!({"name": "echo", "_meta": {"progressToken": "t1"}});
    let asking = tokio::spawn(Messages::of(modern(&scene.world, &token, "tools/call", params)));
    let claim = scene.hand.claim().await;
    let request = claim.request.id.to_string();
    let progress = json!({"title": "Progress of echo", "schema_name": "tool.progress.v1",
        "tags": ["tool:progress", ToolResponse::tag(&request)],
        "context": {"request_id": request, "request": request, "tool": "echo", "fraction": 0.5, "message": "half"}});
    let progress: NewBreadcrumb = serde_json::from_value(progress).unwrap();
    scene.world.runner(scene.tenant).on_behalf_of(caller.id).unwrap().create(progress, None).await.unwrap();
    let mut messages = asking.await.unwrap();
    let notified = messages.next().await.unwrap();
    assert_eq!(notified["method"], "notifications/progress");
    assert_eq!(notified["params"], json!({"progressToken": "t1", "progress": 50.0, "total": 100.0, "message": "half"}));
    scene.hand.answer(&claim, Ok(json!({"done": true}))).await;
    assert_eq!(messages.next().await.unwrap()["result"]["structuredContent"], json!({"done": true}));
    assert_eq!(messages.next().await, None);
    scene.world.close().await;
}

#[tokio::test]
async fn a_closed_stream_cancels_the_call() {
    let mut scene = echo().await;
    let mut events = client::events(&scene).await;
    let asking = tokio::spawn(call(&scene, "echo", json!({})).send());
    let claim = scene.hand.claim().await;
    asking.abort();
    client::cancelled(&mut events, claim.request.id).await;
    scene.world.close().await;
}

#[tokio::test]
async fn a_long_call_is_a_task_that_outlives_its_caller() {
    let mut scene = echo().await;
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let ask = |scene: &Scene, method: &str, params: Value| {
        with_capabilities(&scene.world, &scene.token, method, params, tasks.clone())
    };
    let asking = tokio::spawn(result(ask(&scene, "tools/call", json!({"name": "echo"}))));
    let claim = scene.hand.claim().await;
    let created = asking.await.unwrap();
    let id = created["taskId"].as_str().unwrap();
    assert_eq!((created["resultType"].as_str(), created["status"].as_str()), (Some("task"), Some("working")));
    assert_eq!(id, claim.request.id.to_string());
    let task = json!({"taskId": id});
    assert_eq!(result(ask(&scene, "tasks/get", task.clone())).await["status"], "working");
    // A server beside this one knows it too.
    let beside = scene.world.beside().await;
    scene.hand.answer(&claim, Ok(json!({"n": 1}))).await;
    let request = with_capabilities(&beside, &scene.token, "tasks/get", task.clone(), tasks.clone());
    let got = result(request).await;
    assert_eq!((&got["status"], &got["result"]["structuredContent"]), (&json!("completed"), &json!({"n": 1})), "{got}");
    beside.close().await;

    let asking = tokio::spawn(result(ask(&scene, "tools/call", json!({"name": "echo"}))));
    let claim = scene.hand.claim().await;
    let task = json!({"taskId": asking.await.unwrap()["taskId"]});
    assert_eq!(result(ask(&scene, "tasks/cancel", task.clone())).await["resultType"], "complete");
    scene.hand.answer(&claim, Err(ToolFailure::new(ErrorCode::Cancelled, "cancelled"))).await;
    assert_eq!(result(ask(&scene, "tasks/get", task.clone())).await["status"], "cancelled");

    let (_, refused) = error(ask(&scene, "tasks/get", json!({"taskId": "none"}))).await;
    assert_eq!(refused["code"], -32602);
    let other = scene.world.token(&[Role::Emitter]).await;
    let (_, refused) = error(with_capabilities(&scene.world, &other, "tasks/get", task.clone(), tasks.clone())).await;
    assert_eq!(refused["code"], -32602);
    let undeclared = answer(modern(&scene.world, &scene.token, "tasks/get", task)).await;
    assert_eq!(undeclared["error"]["code"], -32021, "{undeclared}");
    scene.world.close().await;
}

#[tokio::test]
async fn a_task_fails_as_its_call_would_have() {
    let mut scene = echo().await;
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let ask = |scene: &Scene, method: &str, params: Value| {
        with_capabilities(&scene.world, &scene.token, method, params, tasks.clone())
    };
    for (code, status) in [(ErrorCode::ExecutionFailed, "completed"), (ErrorCode::ToolNotFound, "failed")] {
        let created = result(ask(&scene, "tools/call", json!({"name": "echo"}))).await;
        let claim = scene.hand.claim().await;
        scene.hand.answer(&claim, Err(ToolFailure::new(code, "no luck"))).await;
        let got = result(ask(&scene, "tasks/get", json!({"taskId": created["taskId"]}))).await;
        assert_eq!(got["status"], status, "{got}");
        if code == ErrorCode::ToolNotFound {
            assert_eq!((&got["error"]["code"], &got["error"]["message"]), (&json!(-32602), &json!("no luck")));
            assert!(got["result"].is_null(), "{got}");
        } else {
            assert!(got["result"]["isError"] == true && got["error"].is_null(), "{got}");
        }
    }
    scene.world.close().await;
}

/// The runner is another process, which continues meanwhile.
#[tokio::test]
async fn the_caller_of_a_task_reads_awaits_and_cancels_it_after_a_restart_of_the_server() {
    let Scene { world, tenant, token, .. } = echo().await;
    let runner = world.beside().await;
    let (mut hand, mut events) = (Hand::of(&runner, tenant).await, runner.runner(tenant).events(None).await.unwrap());
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let ask =
        |world: &World, method: &str, params: Value| with_capabilities(world, &token, method, params, tasks.clone());
    let mut begun = Vec::new();
    for _ in 0..2 {
        let created = result(ask(&world, "tools/call", json!({"name": "echo"}))).await;
        let claim = hand.claim().await;
        assert_eq!(created["taskId"], json!(claim.request.id));
        begun.push(claim);
    }
    let queued = result(ask(&world, "tools/call", json!({"name": "echo"}))).await["taskId"].clone();

    let world = world.restarted().await;
    let about = |method: &str, id: Value| result(ask(&world, method, json!({"taskId": id})));
    for id in [json!(begun[0].request.id), json!(begun[1].request.id), queued.clone()] {
        assert_eq!(about("tasks/get", id).await["status"], "working");
    }
    hand.answer(&begun[0], Ok(json!({"n": 1}))).await;
    let got = about("tasks/get", json!(begun[0].request.id)).await;
    assert_eq!((&got["status"], &got["result"]["structuredContent"]), (&json!("completed"), &json!({"n": 1})), "{got}");

    let running = begun[1].request.id;
    assert_eq!(about("tasks/cancel", json!(running)).await["resultType"], "complete");
    client::cancelled(&mut events, running).await;
    hand.answer(&begun[1], Err(ToolFailure::new(ErrorCode::Cancelled, "cancelled"))).await;
    // The response to a call that no runner has is written at once.
    assert_eq!(about("tasks/cancel", queued.clone()).await["resultType"], "complete");
    for id in [json!(running), queued] {
        assert_eq!(about("tasks/get", id).await["status"], "cancelled");
    }
    runner.close().await;
    world.close().await;
}
