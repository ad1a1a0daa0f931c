//! A model's calls of tools, and the messages that it gets back.

use rcrt_breadcrumb::{ErrorCode, ToolFailure, ToolFormat};
use serde_json::{Value, json};

use crate::invoke::Scene;

#[tokio::test]
async fn a_models_call_gets_the_message_of_its_format() {
    let mut scene = Scene::start().await;
    crate::tools::offer(&scene.world, scene.tenant).await;
    let name = ToolFormat::OpenAi.name("weather.now");
    let arguments = json!({"city": "Rome"});
    for (format, call, good, bad) in [
        (
            "openai",
            json!({"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "{\"sky\":\"blue\"}"}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "ExecutionFailed: no luck"}),
        ),
        (
            "openai-responses",
            json!({"type": "function_call", "id": "f1", "call_id": "c1", "name": name, "arguments": arguments.to_string()}),
            json!({"type": "function_call_output", "call_id": "c1", "output": "{\"sky\":\"blue\"}"}),
            json!({"type": "function_call_output", "call_id": "c1", "output": "ExecutionFailed: no luck"}),
        ),
        (
            "anthropic",
            json!({"type": "tool_use", "id": "t1", "name": name, "input": arguments}),
            json!({"type": "tool_result", "tool_use_id": "t1", "content": "{\"sky\":\"blue\"}", "is_error": false}),
            json!({"type": "tool_result", "tool_use_id": "t1", "content": "ExecutionFailed: no luck", "is_error": true}),
        ),
        (
            "mcp",
            json!({"name": "weather.now", "arguments": arguments}),
            json!({"content": [{"type": "text", "text": "{\"sky\":\"blue\"}"}], "structuredContent": {"sky": "blue"}, "isError": false}),
            json!({"content": [{"type": "text", "text": "ExecutionFailed: no luck"}], "isError": true}),
        ),
    ] {
        let path =
            format!("weather.now/invoke?format={format}&session=s1&model=small&max_result_chars=5000&requestId=r1");
        for (result, message) in
            [(Ok(json!({"sky": "blue"})), good), (Err(ToolFailure::new(ErrorCode::ExecutionFailed, "no luck")), bad)]
        {
            let asking = tokio::spawn(scene.invoke_at(&path, &call));
            let claim = scene.hand.claim().await;
            assert_eq!(
                Value::Object(claim.request.context.clone()),
                json!({"tool": "weather.now", "input": arguments, "requestId": "r1", "session": "s1", "model": "small",
                    "max_result_chars": 5000})
            );
            scene.hand.answer(&claim, result).await;
            assert_eq!(asking.await.unwrap().ok().json(), message, "{format}");
        }
    }
    scene.world.close().await;
}

/// The model must correct its arguments; no tool runs.
#[tokio::test]
async fn arguments_that_are_not_json_are_a_failure_for_the_model() {
    let scene = Scene::start().await;
    let call = json!({"id": "c1", "function": {"name": "echo", "arguments": "{\"say\": "}});
    let message = scene.invoke_at("echo/invoke?format=openai", &call).await.ok().json();
    assert_eq!((&message["role"], &message["tool_call_id"]), (&json!("tool"), &json!("c1")));
    let text = message["content"].as_str().unwrap();
    assert!(text.starts_with("InvalidArguments: the arguments are not valid JSON"), "{text}");
    scene.world.close().await;
}

#[tokio::test]
async fn mistakes_of_the_program_are_refused_with_the_field() {
    let scene = Scene::start().await;
    for (query, call, field) in [
        ("?format=openai", json!({"function": {"name": "echo", "arguments": "{}"}}), "id"),
        ("?format=openai", json!({"id": "c1", "function": {"name": "other", "arguments": "{}"}}), "function.name"),
        ("?format=anthropic", json!({"type": "text", "text": "hello"}), "type"),
        ("?format=mcp", json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}}), "params"),
        ("?format=mcp&deadline_ms=soon", json!({"name": "echo"}), "deadline_ms"),
        ("?format=mcp&deadline_ms=0", json!({"name": "echo"}), "deadline_ms"),
        ("?format=mcp&debug=yes", json!({"name": "echo"}), "debug"),
        ("?format=gemini", json!({"name": "echo"}), "format"),
        ("?session=s1", json!({}), "session"),
        ("", json!({"args": {}}), "args"),
    ] {
        scene.invoke_at(&format!("echo/invoke{query}"), &call).await.violation(field);
    }
    scene.world.close().await;
}

/// A request whose response its author could not find, or whose tool would run without its input.
#[tokio::test]
async fn misspelled_fields_are_refused_with_the_intended_one() {
    let scene = Scene::start().await;
    for (field, meant) in
        [("args", "input"), ("request_id", "requestId"), ("session_id", "session"), ("timeout", "deadline_ms")]
    {
        let said = scene.invoke_at("echo/invoke", &json!({field: "x"})).await.violation(field);
        assert!(said.contains(&format!("did you mean {meant}?")), "{said}");
        let record = json!({"title": "Call", "schema_name": "tool.request.v1", "tags": ["workspace:w"],
            "context": {"tool": "echo", field: "x"}});
        let path = format!("context.{field}");
        let said = scene.world.post("/breadcrumbs", &scene.token, record).await.violation(&path);
        assert_eq!(said, format!("is not a field of a request; did you mean {meant}?"));
    }
    for (field, value, meant) in [
        ("id", json!("r1"), "requestId"),
        ("body", json!({"say": "hi"}), "input"),
        ("data", json!({"say": "hi"}), "input"),
        ("message", json!("hi"), "input"),
    ] {
        let record =
            json!({"title": "Call", "schema_name": "tool.request.v1", "context": {"tool": "echo", field: value}});
        let path = format!("context.{field}");
        let said = scene.world.post("/breadcrumbs", &scene.token, record).await.violation(&path);
        assert_eq!(said, format!("is not a field of a request; did you mean {meant}?"));
    }
    for field in ["tool_name", "name"] {
        let record =
            json!({"title": "Call", "schema_name": "tool.request.v1", "context": {field: "echo", "input": {}}});
        let said = scene.world.post("/breadcrumbs", &scene.token, record).await.violation(&format!("context.{field}"));
        assert_eq!(said, "is not a field of a request; did you mean tool?");
    }
    // The fields are there, so these are the caller's own.
    let context = json!({"tool": "echo", "input": {}, "requestId": "r1", "id": 1, "data": 2, "message": 3, "name": 4});
    let record = json!({"title": "Call", "schema_name": "tool.request.v1", "context": context});
    assert_eq!(scene.world.post("/breadcrumbs", &scene.token, record).await.status.as_u16(), 201);
    let unnamed = json!({"title": "Call", "context": {"tool": "echo", "input": {}}});
    let said = scene.world.post("/breadcrumbs", &scene.token, unnamed).await.violation("schema_name");
    assert!(said.contains("tool.request.v1"), "{said}");
    for (field, meant) in [("schemaName", "schema_name"), ("schema", "schema_name"), ("name", "title")] {
        let said = scene.world.post("/breadcrumbs", &scene.token, json!({"title": "a", field: "b"})).await;
        assert!(said.violation(field).contains(&format!("did you mean {meant}?")));
    }
    let call = json!({"name": "echo"});
    let said = scene.invoke_at("echo/invoke?format=mcp&request_id=r1", &call).await.violation("request_id");
    assert!(said.contains("did you mean requestId?"), "{said}");
    scene.world.close().await;
}

#[tokio::test]
async fn the_description_has_the_bodies_of_each_format() {
    let mut scene = Scene::start().await;
    let document = scene.world.get("/openapi.json", "").await.ok().json();
    let operation = &document["paths"]["/tools/{name}/invoke"]["post"];
    let resolve = |schema: &Value| {
        let reference = schema["$ref"].as_str().unwrap();
        document.pointer(reference.trim_start_matches('#')).unwrap().clone()
    };
    // The alternatives that have every field of a body, and require no other.
    let fitting = |content: &Value, body: &Value| -> Vec<String> {
        let alternatives = resolve(&content["content"]["application/json"]["schema"]);
        let fits = |alternative: &&Value| {
            let schema = resolve(alternative);
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            body.as_object().unwrap().keys().all(|field| schema["properties"].get(field).is_some())
                && required.iter().all(|field| body.get(field.as_str().unwrap()).is_some())
        };
        let name = |schema: &Value| schema["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        alternatives["anyOf"].as_array().unwrap().iter().filter(fits).map(name).collect()
    };
    let function = json!({"name": "echo", "arguments": "{"});
    for (query, call, described, answered) in [
        (
            "?format=openai",
            json!({"id": "c1", "type": "function", "function": function}),
            "OpenAiToolCall",
            "OpenAiToolMessage",
        ),
        (
            "?format=openai",
            json!({"call_id": "c1", "type": "function_call", "name": "echo", "arguments": "{"}),
            "OpenAiFunctionCall",
            "OpenAiFunctionOutput",
        ),
        (
            "?format=anthropic",
            json!({"type": "tool_use", "id": "t1", "name": "echo", "input": {}}),
            "AnthropicToolUse",
            "AnthropicToolResult",
        ),
        ("?format=mcp", json!({"name": "echo", "arguments": {}}), "McpToolCall", "McpToolResult"),
        ("", json!({"input": {}, "session": "s1"}), "Invocation", "ToolResponse"),
    ] {
        assert_eq!(fitting(&operation["requestBody"], &call), [described], "{query}");
        let asking = tokio::spawn(scene.invoke_at(&format!("echo/invoke{query}"), &call));
        // Arguments that are not JSON are a failure without a request.
        if !call.to_string().contains(r#""{""#) {
            let claim = scene.hand.claim().await;
            scene.hand.answer(&claim, Ok(json!({"said": "hi"}))).await;
        }
        let answer = asking.await.unwrap().ok().json();
        assert_eq!(fitting(&operation["responses"]["200"], &answer), [answered], "{query}");
    }
    scene.world.close().await;
}
