//! The server side of A2A: the card, both bindings, and who sees a task.

// Tests pass literals.
#![allow(clippy::needless_pass_by_value)]

use rcrt_breadcrumb::{ErrorCode, Role, Tenancy, ToolFailure};
use serde_json::{Value, json};

use crate::harness::{Answer, World, answer};
use crate::invoke::Scene;
use crate::tools::offer;

const VERSION: (&str, &str) = ("A2A-Version", "1.0");

/// The record by which a tenant chooses its skills.
fn settings(skills: &Value) -> Value {
    json!({"title": "skills", "schema_name": "a2a.card.v1",
        "context": {"name": "Test agent", "description": "For tests.", "skills": skills}})
}

/// A tenant that offers these skills, and an agent that calls them.
async fn scene(skills: Value) -> Scene {
    let scene = Scene::start().await;
    offer(&scene.world, scene.tenant).await;
    let (_, curator) = scene.world.agent(scene.tenant, &[Role::Curator]).await;
    scene.world.create(&curator, settings(&skills)).await;
    scene
}

fn message(id: &str, parts: Value) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": parts, "metadata": {"skill": "echo"}}})
}

/// A message that returns at once.
fn at_once(id: &str) -> Value {
    let mut message = message(id, json!([{"data": {"say": id}}]));
    message["configuration"] = json!({"returnImmediately": true});
    message
}

async fn rest(world: &World, method: &str, path: &str, token: &str, body: Option<&Value>) -> Answer {
    let request = world.request(method, &format!("/a2a{path}"), token).header(VERSION.0, VERSION.1);
    answer(match body {
        Some(body) => request.header("content-type", "application/a2a+json").body(body.to_string()),
        None => request,
    })
    .await
}

async fn rpc(world: &World, token: &str, method: &str, params: &Value) -> Answer {
    let body = json!({"jsonrpc": "2.0", "id": "r1", "method": method, "params": params});
    answer(world.request("POST", "/a2a", token).header(VERSION.0, VERSION.1).json(&body)).await
}

async fn result(world: &World, token: &str, method: &str, params: &Value) -> Value {
    let answer = rpc(world, token, method, params).await.ok().json();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("r1")), "{answer}");
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// The reason of an error in both bindings.
fn reason(error: &Value) -> &str {
    let error = &error["error"];
    let details = error.get("data").unwrap_or(&error["details"]);
    details[0]["reason"].as_str().unwrap_or_else(|| panic!("no reason: {error}"))
}

/// The data of each message of a stream.
fn updates(stream: &Answer) -> Vec<Value> {
    assert_eq!(stream.header("content-type"), "text/event-stream");
    let data = stream.text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|text| serde_json::from_str(text).unwrap()).collect()
}

#[tokio::test]
async fn the_card_shows_the_skills_that_a_curator_of_the_public_tenant_chose() {
    let world = World::start().await;
    let none = world.get("/.well-known/agent-card.json", "").await.ok().json();
    assert_eq!(none["skills"], json!([]));
    let tenant = world.store.ensure_tenant("default").await.unwrap().id;
    offer(&world, tenant).await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, emitter) = world.agent(tenant, &[Role::Emitter]).await;
    let skills = json!(["echo", "web_search", "missing", {"tool": "weather.now", "name": "Weather", "tags": ["sky"],
        "description": "The weather.", "examples": ["Will it rain?"]}]);
    world.create(&curator, settings(&skills)).await;
    // An agent that is no curator cannot open tools to others.
    world.create(&emitter, settings(&json!(["say"]))).await;
    for path in ["/.well-known/agent-card.json", "/.well-known/agent-card.json/"] {
        let card = world.get(path, "").await.ok().json();
        assert_eq!((&card["name"], &card["description"]), (&json!("Test agent"), &json!("For tests.")));
        let echo = json!({"id": "echo", "name": "echo", "description": "What echo does.", "tags": ["native"]});
        let weather = json!({"id": "weather.now", "name": "Weather", "description": "The weather.", "tags": ["sky"],
            "examples": ["Will it rain?"]});
        assert_eq!(card["skills"], json!([echo, weather]));
        let url = format!("{}/a2a", world.base);
        let interface = |binding: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"});
        assert_eq!(card["supportedInterfaces"], json!([interface("JSONRPC"), interface("HTTP+JSON")]));
    }
    // The extended card is that of the caller's tenant.
    let other = world.token(&[Role::Caller]).await;
    let extended = rest(&world, "GET", "/extendedAgentCard", &other, None).await.ok().json();
    assert_eq!(extended["skills"], json!([]));
    let own = result(&world, &curator, "GetExtendedAgentCard", &json!({})).await;
    assert_eq!(own["skills"].as_array().unwrap().len(), 2);
    world.close().await;
}

#[tokio::test]
async fn a_message_waits_for_its_result_in_both_bindings() {
    let mut scene = scene(json!(["echo"])).await;
    let (base, http, token) = (scene.world.base.clone(), scene.world.http.clone(), scene.token.clone());
    let sent = message("m1", json!([{"data": {"say": "hi"}}]));
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": sent});
    let asking = http.post(format!("{base}/a2a")).bearer_auth(&token).header(VERSION.0, VERSION.1).json(&body);
    let asking = tokio::spawn(answer(asking));
    let claim = scene.hand.claim().await;
    assert_eq!(
        (&claim.request.context["tool"], &claim.request.context["input"]),
        (&json!("echo"), &json!({"say": "hi"}))
    );
    scene.hand.answer(&claim, Ok(json!({"said": "hi"}))).await;
    let task = asking.await.unwrap().ok().json()["result"]["task"].clone();
    assert_eq!((&task["id"], &task["status"]["state"]), (&json!(claim.request.id), &json!("TASK_STATE_COMPLETED")));
    assert_eq!(task["artifacts"][0]["parts"], json!([{"data": {"said": "hi"}, "mediaType": "application/json"}]));
    assert_eq!(
        (&task["history"][0]["messageId"], &task["history"][0]["contextId"]),
        (&json!("m1"), &task["contextId"])
    );

    // A plain text is the tool's only field, if that is a text. A failure is a state.
    let text = message("m2", json!([{"text": "hello"}])).to_string();
    let asking = http.post(format!("{base}/a2a/message:send")).bearer_auth(&token).header(VERSION.0, VERSION.1);
    let asking = tokio::spawn(answer(asking.header("content-type", "application/a2a+json").body(text)));
    let claim = scene.hand.claim().await;
    assert_eq!(claim.request.context["input"], json!({"a": "hello"}));
    scene.hand.answer(&claim, Err(ToolFailure::new(ErrorCode::ExecutionFailed, "no luck"))).await;
    let answer = asking.await.unwrap().ok();
    assert_eq!(answer.header("content-type"), "application/a2a+json");
    let task = answer.json()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(task["status"]["message"]["parts"], json!([{"text": "ExecutionFailed: no luck"}]));
    assert!(task.get("artifacts").is_none(), "{task}");
    let read = result(&scene.world, &token, "GetTask", &json!({"id": task["id"], "historyLength": 0})).await;
    assert_eq!((&read["status"], read.get("history")), (&task["status"], None));
    scene.world.close().await;
}

#[tokio::test]
async fn a_task_is_streamed_until_it_ends() {
    let mut scene = scene(json!(["echo"])).await;
    let (base, http, token) = (scene.world.base.clone(), scene.world.http.clone(), scene.token.clone());
    let stream = |path: &str, body: Value| {
        let request = http.post(format!("{base}/a2a{path}")).bearer_auth(&token).header(VERSION.0, VERSION.1);
        tokio::spawn(request.json(&body).send())
    };
    let read = async |followed: reqwest::Response| {
        let (status, headers) = (followed.status(), followed.headers().clone());
        updates(&Answer { status, headers, text: followed.text().await.unwrap() })
    };
    let sent = message("m1", json!([{"data": {"skill": "echo", "input": {"say": 1}}}]));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": sent});
    for (path, body, within) in [("/message:stream", sent.clone(), ""), ("", body, "result")] {
        // The second is another message: a repeated one would get the first task.
        let text = body.to_string().replace("m1", &format!("m1{within}"));
        let streaming = stream(path, serde_json::from_str(&text).unwrap());
        let claim = scene.hand.claim().await;
        assert_eq!(claim.request.context["input"], json!({"say": 1}));
        // Its head comes when the task is followed.
        let followed = streaming.await.unwrap().unwrap();
        assert_eq!(followed.status(), 200);
        scene.hand.answer(&claim, Ok(json!("done"))).await;
        let all = read(followed).await;
        let all: Vec<&Value> = all.iter().map(|one| if within.is_empty() { one } else { &one[within] }).collect();
        assert_eq!(all[0]["task"]["id"], json!(claim.request.id), "{all:?}");
        let (artifact, status) = (all[all.len() - 2], all[all.len() - 1]);
        assert_eq!(artifact["artifactUpdate"]["artifact"]["parts"], json!([{"text": "done"}]), "{all:?}");
        assert_eq!(status["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{all:?}");
        assert_eq!(status["statusUpdate"]["taskId"], json!(claim.request.id));
        // It has ended: there is nothing to follow.
        let path = format!("/tasks/{}:subscribe", claim.request.id);
        let refused = rest(&scene.world, "GET", &path, &token, None).await;
        assert_eq!((refused.status.as_u16(), reason(&refused.json())), (400, "UNSUPPORTED_OPERATION"));
    }
    // A second connection follows the same task.
    let sent = rest(&scene.world, "POST", "/message:send", &token, Some(&at_once("m3"))).await.ok().json();
    let task = sent["task"]["id"].as_str().unwrap();
    // Its head comes when it is subscribed.
    let request = scene.world.request("POST", &format!("/a2a/tasks/{task}:subscribe"), &token);
    let followed = request.header(VERSION.0, VERSION.1).send().await.unwrap();
    let claim = scene.hand.claim().await;
    scene.hand.answer(&claim, Ok(json!(null))).await;
    let all = read(followed).await;
    assert_eq!(all.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    scene.world.close().await;
}

#[tokio::test]
async fn tasks_are_listed_and_cancelled() {
    let scene = scene(json!(["echo"])).await;
    let world = &scene.world;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        let sent = rest(world, "POST", "/message:send", &scene.token, Some(&at_once(name))).await.ok().json();
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
        ids.push(sent["task"]["id"].as_str().unwrap().to_owned());
    }
    // A repeated message has the same task.
    let again = result(world, &scene.token, "SendMessage", &at_once("c")).await;
    assert_eq!(again["task"]["id"], json!(ids[2]));

    let first = result(world, &scene.token, "ListTasks", &json!({"pageSize": 2})).await;
    assert_eq!((&first["totalSize"], &first["pageSize"]), (&json!(3), &json!(2)));
    let next = first["nextPageToken"].as_str().unwrap();
    let path = format!("/tasks?pageSize=2&pageToken={next}&historyLength=1");
    let second = rest(world, "GET", &path, &scene.token, None).await.ok().json();
    let listed: Vec<&Value> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["tasks"].as_array().unwrap())
        .map(|task| &task["id"])
        .collect();
    assert_eq!(listed, [&json!(ids[2]), &json!(ids[1]), &json!(ids[0])]);
    assert_eq!(second["nextPageToken"], "");
    assert_eq!(second["tasks"][0]["history"][0]["messageId"], "a");
    assert!(first["tasks"][0].get("history").is_none());

    let cancelled = rest(world, "POST", &format!("/tasks/{}:cancel", ids[0]), &scene.token, Some(&json!({}))).await;
    assert_eq!(cancelled.ok().json()["status"]["state"], "TASK_STATE_CANCELED");
    let refused = rpc(world, &scene.token, "CancelTask", &json!({"id": ids[0]})).await.ok().json();
    assert_eq!((reason(&refused), &refused["error"]["code"]), ("TASK_NOT_CANCELABLE", &json!(-32002)));
    for (query, found) in [
        ("status=TASK_STATE_CANCELED", 1),
        ("status=TASK_STATE_SUBMITTED", 2),
        ("status=TASK_STATE_WORKING", 0),
        ("contextId=none", 0),
        ("statusTimestampAfter=2000-01-01T00:00:00Z", 3),
    ] {
        let page = rest(world, "GET", &format!("/tasks?{query}"), &scene.token, None).await.ok().json();
        assert_eq!(page["tasks"].as_array().unwrap().len(), found, "{query}: {page}");
    }
    for query in ["pageSize=0", "pageSize=101", "pageSize=x", "pageToken=x", "status=DONE", "statusTimestampAfter=now"]
    {
        let refused = rest(world, "GET", &format!("/tasks?{query}"), &scene.token, None).await;
        assert_eq!((refused.status.as_u16(), reason(&refused.json())), (400, "INVALID_PARAMS"), "{query}");
    }
    scene.world.close().await;
}

#[tokio::test]
async fn a_task_does_not_exist_for_other_agents() {
    let scene = scene(json!(["echo"])).await;
    let world = &scene.world;
    let sent = rest(world, "POST", "/message:send", &scene.token, Some(&at_once("a"))).await.ok().json();
    let id = sent["task"]["id"].as_str().unwrap();
    let others = [
        world.agent(scene.tenant, &[Role::Curator]).await.1,
        world.agent(scene.tenant, &[Role::Emitter]).await.1,
        world.agent(scene.tenant, &[Role::Caller]).await.1,
        world.token(&[Role::Curator]).await,
    ];
    for token in others {
        for (method, path) in [
            ("GET", format!("/tasks/{id}")),
            ("GET", format!("/tasks/{id}:subscribe")),
            ("POST", format!("/tasks/{id}:cancel")),
            ("GET", "/tasks/not-an-id".to_owned()),
        ] {
            let refused = rest(world, method, &path, &token, None).await;
            assert_eq!((refused.status.as_u16(), reason(&refused.json())), (404, "TASK_NOT_FOUND"), "{path}");
        }
        let list = rest(world, "GET", "/tasks", &token, None).await.ok().json();
        assert_eq!((&list["tasks"], &list["totalSize"]), (&json!([]), &json!(0)));
        let mut next = at_once("b");
        next["message"]["taskId"] = json!(id);
        let refused = rest(world, "POST", "/message:send", &token, Some(&next)).await;
        assert_eq!(reason(&refused.json()), "TASK_NOT_FOUND");
    }
    // The task itself takes no second message.
    let mut next = at_once("b");
    next["message"]["taskId"] = json!(id);
    let refused = rest(world, "POST", "/message:send", &scene.token, Some(&next)).await;
    assert_eq!(reason(&refused.json()), "UNSUPPORTED_OPERATION");
    scene.world.close().await;
}

#[tokio::test]
async fn a_request_that_is_not_valid_gets_the_error_of_the_protocol() {
    let scene = scene(json!(["echo", "say"])).await;
    let world = &scene.world;
    let part = json!([{"data": {}}]);
    for (field, value, expected) in [
        ("messageId", json!(""), "INVALID_PARAMS"),
        ("role", json!("ROLE_AGENT"), "INVALID_PARAMS"),
        ("parts", json!([]), "INVALID_PARAMS"),
        ("parts", json!([{}]), "INVALID_PARAMS"),
        ("parts", json!([{"text": "a", "data": 1}]), "INVALID_PARAMS"),
        ("parts", json!([{"data": {}}, {"data": {}}]), "INVALID_PARAMS"),
        ("parts", json!([{"url": "https://a.example/"}]), "CONTENT_TYPE_NOT_SUPPORTED"),
        ("parts", json!("text"), "INVALID_PARAMS"),
        ("contextId", json!("c".repeat(151)), "INVALID_PARAMS"),
        ("taskId", json!("none"), "TASK_NOT_FOUND"),
        ("metadata", json!({"skill": "delete_everything"}), "INVALID_PARAMS"),
        // Two skills, and none is named.
        ("metadata", json!({}), "INVALID_PARAMS"),
    ] {
        let mut sent = message("m", part.clone());
        sent["message"][field] = value;
        let refused = rpc(world, &scene.token, "SendMessage", &sent).await.ok().json();
        assert_eq!(reason(&refused), expected, "{sent}: {refused}");
    }
    let mut modes = message("m", part.clone());
    modes["configuration"] = json!({"acceptedOutputModes": ["image/png"]});
    let refused = rest(world, "POST", "/message:send", &scene.token, Some(&modes)).await;
    assert_eq!(reason(&refused.json()), "CONTENT_TYPE_NOT_SUPPORTED");
    let refused = rpc(world, &scene.token, "message/send", &json!({})).await.ok().json();
    assert_eq!(refused["error"]["code"], -32601);

    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc": "2.0", "method": "GetTask"}"#, -32600),
        (r#"{"id": 1, "method": "GetTask"}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1}"#, -32600),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []}"#, -32602),
    ] {
        let request = world.request("POST", "/a2a", &scene.token).header(VERSION.0, VERSION.1);
        let refused = answer(request.header("content-type", "application/json").body(body)).await.ok().json();
        assert_eq!(refused["error"]["code"], code, "{body}");
    }
    let request = world.request("POST", "/a2a/message:send", &scene.token).header(VERSION.0, VERSION.1);
    let refused = answer(request.header("content-type", "application/json").body("{")).await;
    assert_eq!((refused.status.as_u16(), reason(&refused.json())), (400, "PARSE_ERROR"));
    scene.world.close().await;
}

#[tokio::test]
async fn only_version_1_0_is_spoken() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"});
    for (version, is_spoken) in
        [(None, false), (Some("0.3"), false), (Some("2.0"), false), (Some("1.0"), true), (Some("1.0.1"), true)]
    {
        let asked = |method: &str, path: &str| {
            let request = world.request(method, path, &token);
            version.map_or(request.try_clone().unwrap(), |version| request.header(VERSION.0, version))
        };
        let listed = answer(asked("GET", "/a2a/tasks")).await;
        let called = answer(asked("POST", "/a2a").json(&call)).await.ok().json();
        if is_spoken {
            assert!(listed.status.is_success() && called.get("error").is_none(), "{version:?} {called}");
        } else {
            assert_eq!((listed.status.as_u16(), reason(&listed.json())), (400, "VERSION_NOT_SUPPORTED"), "{version:?}");
            assert_eq!((reason(&called), &called["id"]), ("VERSION_NOT_SUPPORTED", &json!(1)), "{version:?}");
        }
    }
    world.close().await;
}

#[tokio::test]
async fn push_configurations_belong_to_a_task_and_show_no_secret() {
    let scene = scene(json!(["echo"])).await;
    let world = &scene.world;
    let sent = rest(world, "POST", "/message:send", &scene.token, Some(&at_once("a"))).await.ok().json();
    let id = sent["task"]["id"].as_str().unwrap();
    let path = format!("/tasks/{id}/pushNotificationConfigs");
    let config = json!({"id": "mine", "url": "https://example.com/hook", "token": "a token",
        "authentication": {"scheme": "Bearer", "credentials": "a secret"}});
    let shown = json!({"id": "mine", "taskId": id, "url": "https://example.com/hook"});
    assert_eq!(rest(world, "POST", &path, &scene.token, Some(&config)).await.ok().json(), shown);
    let second = json!({"taskId": id, "url": "https://example.com/2"});
    let made = result(world, &scene.token, "CreateTaskPushNotificationConfig", &second).await;
    let list = rest(world, "GET", &path, &scene.token, None).await.ok().json();
    assert_eq!(list, json!({"configs": [shown, made], "nextPageToken": ""}));
    let named = json!({"taskId": id, "id": "mine"});
    assert_eq!(result(world, &scene.token, "GetTaskPushNotificationConfig", &named).await, shown);
    assert_eq!(rest(world, "GET", &format!("{path}/mine"), &scene.token, None).await.ok().json(), shown);

    // Other agents see neither the task nor its configurations.
    let (_, other) = world.agent(scene.tenant, &[Role::Curator]).await;
    for (method, path, body) in [
        ("POST", path.clone(), Some(&config)),
        ("GET", path.clone(), None),
        ("GET", format!("{path}/mine"), None),
        ("DELETE", format!("{path}/mine"), None),
    ] {
        let refused = rest(world, method, &path, &other, body).await;
        assert_eq!((refused.status.as_u16(), reason(&refused.json())), (404, "TASK_NOT_FOUND"), "{method} {path}");
    }
    assert_eq!(rest(world, "DELETE", &format!("{path}/mine"), &scene.token, None).await.ok().json(), json!({}));
    // By the names of the protocol's definition, too. A repeated deletion succeeds.
    let named = json!({"task_id": id, "id": "mine"});
    assert_eq!(result(world, &scene.token, "DeleteTaskPushNotificationConfig", &named).await, json!({}));
    let gone = rpc(world, &scene.token, "GetTaskPushNotificationConfig", &named).await.ok().json();
    assert_eq!(reason(&gone), "TASK_NOT_FOUND");

    rest(world, "POST", &format!("/tasks/{id}:cancel"), &scene.token, None).await.ok();
    // An ended task takes one, which gets nothing.
    assert_eq!(rest(world, "POST", &path, &scene.token, Some(&config)).await.ok().json(), shown);
    scene.world.close().await;
}

#[tokio::test]
async fn a_push_configuration_that_cannot_be_used_is_refused_before_there_is_a_task() {
    let scene = scene(json!(["echo"])).await;
    let world = &scene.world;
    let right = "https://example.com/";
    for (config, field) in [
        (json!({"url": "example.com"}), "url"),
        (json!({"url": "http://127.0.0.1:1/"}), "url"),
        (json!({"url": "http://169.254.169.254/"}), "url"),
        (json!({"url": "http://localhost/"}), "url"),
        (json!({"url": right, "id": "x".repeat(201)}), "id"),
        (json!({"url": right, "token": "two\nlines"}), "token and authentication"),
        (json!({"url": right, "token": "x".repeat(10_000)}), "token and authentication"),
        (json!({"url": right, "authentication": {"scheme": "Bearer"}}), "authentication.credentials"),
        (json!({"url": right, "authentication": {"scheme": "a b", "credentials": "c"}}), "authentication.scheme"),
    ] {
        let mut sent = at_once("a");
        sent["configuration"]["taskPushNotificationConfig"] = config.clone();
        let refused = rpc(world, &scene.token, "SendMessage", &sent).await.ok().json();
        assert_eq!(reason(&refused), "INVALID_PARAMS", "{config}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(field), "{config}: {refused}");
    }
    assert_eq!(rest(world, "GET", "/tasks", &scene.token, None).await.ok().json()["totalSize"], 0);
    let mut sent = at_once("a");
    sent["configuration"]["taskPushNotificationConfig"] = json!({"url": right});
    let task = result(world, &scene.token, "SendMessage", &sent).await["task"].clone();
    let listed = result(world, &scene.token, "ListTaskPushNotificationConfigs", &json!({"taskId": task["id"]})).await;
    assert_eq!(listed["configs"][0]["url"], right);
    scene.world.close().await;
}
