//! Tools that ask the client for input.

use serde_json::{Value, json};

use super::client::{self, error, result, with_capabilities};
use crate::invoke::Scene;

async fn asking_scene() -> Scene {
    let parameters = json!({"type": "object", "properties": {
        "room": {"type": "string"}, "input_responses": {"type": "object"}, "request_state": {"type": "object"}}});
    client::scene(vec![client::tool("book", parameters)]).await
}

fn call(scene: &Scene, params: Value, capabilities: Value) -> reqwest::RequestBuilder {
    let mut params = params;
    params["name"] = json!("book");
    with_capabilities(&scene.world, &scene.token, "tools/call", params, capabilities)
}

fn form() -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Which day?", "requestedSchema":
        {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}}})
}

#[tokio::test]
async fn the_client_answers_and_the_tool_gets_its_state_back() {
    let mut scene = asking_scene().await;
    let list = result(client::modern(&scene.world, &scene.token, "tools/list", json!({}))).await;
    let shown = &list["tools"][0]["inputSchema"]["properties"];
    assert_eq!(shown, &json!({"room": {"type": "string"}}), "clients do not see the inputs that the server fills");

    let elicits = json!({"elicitation": {}});
    // What a client writes there itself does not reach the tool.
    let forged = json!({"room": "blue", "input_responses": {"day": {}}, "request_state": {"paid": true}});
    let asking = tokio::spawn(result(call(&scene, json!({"arguments": forged}), elicits.clone())));
    let claim = scene.hand.claim().await;
    assert_eq!(claim.request.context["input"], json!({"room": "blue"}));
    let output =
        json!({"resultType": "input_required", "inputRequests": {"day": form()}, "requestState": {"paid": false}});
    scene.hand.answer(&claim, Ok(output)).await;
    let asked = asking.await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(asked["inputRequests"]["day"]["params"]["message"], "Which day?");
    let state = asked["requestState"].as_str().unwrap().to_owned();

    let given = json!({"day": {"action": "accept", "content": {"day": "Monday"}}, "broken": 7});
    let retry =
        |room: &str, state: &str| json!({"arguments": {"room": room}, "inputResponses": given, "requestState": state});
    for wrong in [retry("blue", &format!("{state}x")), retry("red", &state)] {
        let (_, refused) = error(call(&scene, wrong, elicits.clone())).await;
        assert!(
            refused["code"] == -32602 && refused["message"].as_str().unwrap().contains("requestState"),
            "{refused}"
        );
    }
    let asking = tokio::spawn(result(call(&scene, retry("blue", &state), elicits)));
    let claim = scene.hand.claim().await;
    let input = &claim.request.context["input"];
    assert_eq!(input["input_responses"], json!({"day": given["day"]}));
    assert_eq!(input["request_state"], json!({"paid": false}));
    scene.hand.answer(&claim, Ok(json!("booked"))).await;
    assert_eq!(asking.await.unwrap()["content"][0]["text"], "booked");
    scene.world.close().await;
}

#[tokio::test]
async fn a_client_is_asked_only_for_what_it_can_do() {
    let mut scene = asking_scene().await;
    let sampling = json!({"method": "sampling/createMessage", "params": {"maxTokens": 9, "messages":
        [{"role": "user", "content": {"type": "text", "text": "A day?"}}]}});
    let output = json!({"resultType": "input_required", "inputRequests": {"form": form(), "model": sampling}});
    let asking = tokio::spawn(result(call(&scene, json!({}), json!({"sampling": {}}))));
    let claim = scene.hand.claim().await;
    scene.hand.answer(&claim, Ok(output.clone())).await;
    let asked = asking.await.unwrap();
    assert_eq!(asked["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["model"]);
    assert!(asked["requestState"].is_null());

    let asking = tokio::spawn(error(call(&scene, json!({}), json!({}))));
    let claim = scene.hand.claim().await;
    scene.hand.answer(&claim, Ok(output)).await;
    let (status, refused) = asking.await.unwrap();
    assert_eq!((status, &refused["code"]), (400, &json!(-32021)));
    assert_eq!(refused["data"]["requiredCapabilities"], json!({"elicitation": {}, "sampling": {}}));

    let asking = tokio::spawn(result(call(&scene, json!({}), json!({"elicitation": {}}))));
    let claim = scene.hand.claim().await;
    scene
        .hand
        .answer(&claim, Ok(json!({"resultType": "input_required", "inputRequests": {"a": {"method": "x"}}})))
        .await;
    let failed = asking.await.unwrap();
    assert!(failed["content"][0]["text"].as_str().unwrap().starts_with("InvalidOutput: "), "{failed}");
    scene.world.close().await;
}

/// The responses can come one by one, also to another server.
#[tokio::test]
async fn a_task_waits_for_all_responses() {
    let mut scene = asking_scene().await;
    let capable = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let asking = tokio::spawn(result(call(&scene, json!({"arguments": {"room": "blue"}}), capable.clone())));
    let claim = scene.hand.claim().await;
    let created = asking.await.unwrap();
    let id = created["taskId"].as_str().unwrap();
    assert!(created["ttlMs"].is_u64() && created["pollIntervalMs"].is_u64(), "{created}");
    let output =
        json!({"resultType": "input_required", "inputRequests": {"a": form(), "b": form()}, "requestState": {"n": 1}});
    scene.hand.answer(&claim, Ok(output)).await;
    let ask = |method: &str, mut params: Value| {
        params["taskId"] = json!(id);
        result(with_capabilities(&scene.world, &scene.token, method, params, capable.clone()))
    };
    let keys = |task: &Value| task["inputRequests"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let task = ask("tasks/get", json!({})).await;
    assert_eq!((task["status"].as_str(), keys(&task)), (Some("input_required"), vec!["a".to_owned(), "b".to_owned()]));
    let answer = |day: &str| json!({"action": "accept", "content": {"day": day}});
    let acknowledged =
        ask("tasks/update", json!({"inputResponses": {"a": answer("Monday"), "x": answer("none")}})).await;
    assert_eq!(acknowledged, json!({"resultType": "complete"}));
    assert_eq!(keys(&ask("tasks/get", json!({})).await), ["b"]);
    for _ in 0..2 {
        // A repeated update continues the task once.
        ask("tasks/update", json!({"inputResponses": {"b": answer("Friday")}})).await;
    }
    assert_eq!(ask("tasks/get", json!({})).await["status"], "working");
    let claim = scene.hand.claim().await;
    let expected = json!({"room": "blue", "input_responses": {"a": answer("Monday"), "b": answer("Friday")}, "request_state": {"n": 1}});
    assert_eq!(claim.request.context["input"], expected);
    scene.hand.answer(&claim, Ok(json!("booked"))).await;
    let request = with_capabilities(&scene.world, &scene.token, "tasks/get", json!({"taskId": id}), capable.clone());
    let done = result(request).await;
    assert_eq!((&done["status"], &done["result"]["content"][0]["text"]), (&json!("completed"), &json!("booked")));
    scene.world.close().await;
}
