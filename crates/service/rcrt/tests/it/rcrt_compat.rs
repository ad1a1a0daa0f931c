//! `--compat rcrt`: unchanged clients of the original RCRT, with another URL.

use std::net::SocketAddr;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use futures::StreamExt;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use crate::model_server::ModelServer;
use crate::model_tools::tools_for;
use crate::program::{Running, rcrt};

/// A token request as RCRT's clients send it.
fn token_request() -> Value {
    json!({"owner_id": "00000000-0000-0000-0000-000000000001", "agent_id": "00000000-0000-0000-0000-000000000AAA",
        "roles": ["curator", "emitter", "subscriber"]})
}

async fn ask(base: &str, method: Method, path: &str, token: &str, body: Value) -> Response {
    let request = Client::new().request(method, format!("{base}{path}")).bearer_auth(token);
    let request = if body.is_null() { request } else { request.json(&body) };
    request.send().await.unwrap()
}

async fn token(base: &str) -> String {
    let given = Client::new().post(format!("{base}/auth/token")).json(&token_request()).send().await.unwrap();
    given.error_for_status().unwrap().json::<Value>().await.unwrap()["token"].as_str().unwrap().to_owned()
}

/// What a successful request to create something returns.
async fn created(base: &str, token: &str, path: &str, body: Value) -> Value {
    let answer = ask(base, Method::POST, path, token, body).await;
    assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
    answer.json().await.unwrap()
}

/// Reads a stream until an event that matches.
async fn wait_for_event(stream: Response, fits: impl Fn(&Value) -> bool) -> Value {
    let mut bytes = stream.bytes_stream();
    let mut text = String::new();
    let reading = async {
        while let Some(part) = bytes.next().await {
            text.push_str(std::str::from_utf8(&part.unwrap()).unwrap());
            while let Some(end) = text.find('\n') {
                let line: String = text.drain(..=end).collect();
                let event = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok());
                if let Some(event) = event.filter(&fits) {
                    return event;
                }
            }
        }
        panic!("the stream ended: {text}");
    };
    tokio::time::timeout(std::time::Duration::from_mins(2), reading).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_rcrt_write_subscribe_and_update_unchanged() {
    let folder = TempDir::new().unwrap();
    let arguments = ["up", "--compat", "rcrt", "--auth", "open", "--listen", "127.0.0.1:0"];
    let up = Running::start(&folder.path().join("data"), &arguments);
    let base = up.api().to_owned();
    let token = token(&base).await;
    let stream = ask(&base, Method::GET, &format!("/events/stream?token={token}"), &token, Value::Null).await;
    assert_eq!(stream.status(), StatusCode::OK);
    let note = json!({"title": "", "schema_name": "note.v1", "tags": ["note"], "context": ["a", "b"], "sort": 1});
    let made = ask(&base, Method::POST, "/breadcrumbs", &token, note).await.json::<Value>().await.unwrap();
    let id = made["id"].as_str().unwrap().to_owned();
    // `--compat rcrt` includes `--rcrt-events`.
    let event = wait_for_event(stream, |event| event["breadcrumb_id"] == id.as_str()).await;
    assert_eq!((&event["type"], &event["version"]), (&json!("breadcrumb.updated"), &json!(1)), "{event}");
    let path = format!("/breadcrumbs/{id}");
    let changed = ask(&base, Method::PATCH, &path, &token, json!({"title": "Changed"})).await;
    assert_eq!(changed.json::<Value>().await.unwrap()["ok"], true);
    let listed = ask(&base, Method::GET, "/breadcrumbs?tag=note&nn=10000&sort=x", &token, Value::Null).await;
    assert_eq!(listed.json::<Value>().await.unwrap()[0]["title"], "Changed");
    // A tool of this program, called as RCRT's agents do.
    let call = json!({"title": "Call", "schema_name": "tool.request.v1", "tags": ["tool:request", "workspace:tools"],
        "context": {"tool": "calculator", "input": {"expression": "6 * 7"}, "requestId": "r-1", "requestedBy": "agent"}});
    let follow = ask(&base, Method::GET, "/events/stream?tag=request:r-1", &token, Value::Null).await;
    assert_eq!(ask(&base, Method::POST, "/breadcrumbs", &token, call).await.status(), StatusCode::CREATED);
    wait_for_event(follow, |event| event["schema_name"] == "tool.response.v1").await;
    // As RCRT's browser extension chats: without a request id, and with its own name of the
    // session.
    let chat = json!({"title": "Chat Request from Extension", "schema_name": "tool.request.v1", "visibility": "team",
        "tags": ["workspace:tools", "tool:request", "chrome:extension"], "context": {"tool": "calculator",
            "input": {"expression": "1 + 1"}, "source": "chrome_extension", "session_id": "chat-1"}});
    let follow = ask(&base, Method::GET, "/events/stream", &token, Value::Null).await;
    let chat = ask(&base, Method::POST, "/breadcrumbs", &token, chat).await.json::<Value>().await.unwrap();
    let chat = chat["id"].as_str().unwrap_or_else(|| panic!("{chat}"));
    let tag = json!(format!("request:{chat}"));
    let is_answer = |event: &Value| event["tags"].as_array().is_some_and(|tags| tags.contains(&tag));
    let answer = wait_for_event(follow, is_answer).await;
    assert_eq!((&answer["context"]["status"], &answer["context"]["output"]["result"]), (&json!("success"), &json!(2)));
    let call = ask(&base, Method::GET, &format!("/calls/{chat}"), &token, Value::Null).await;
    assert_eq!(call.json::<Value>().await.unwrap()["session"], "chat-1");
    // A large result is returned whole, unless the request sets a limit.
    let text = "x".repeat(100_000);
    let echo = async |more: Value| {
        let mut context = json!({"tool": "echo", "input": {"message": text}});
        context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = json!({"title": "Call", "schema_name": "tool.request.v1", "context": context});
        let follow = ask(&base, Method::GET, "/events/stream?schema_name=tool.response.v1", &token, Value::Null).await;
        let written = ask(&base, Method::POST, "/breadcrumbs", &token, request).await.json::<Value>().await.unwrap();
        let id = written["id"].clone();
        wait_for_event(follow, |event| event["context"]["metadata"]["request"] == id).await["context"]["output"].clone()
    };
    assert_eq!(echo(json!({})).await["echo"], text);
    assert_eq!(echo(json!({"max_result_chars": 20_000})).await["type"], "large_result");
    // A tool for RCRT, which passes parameters that only RCRT has.
    let source = "export async function execute(input, context) {\n  const found = await \
                  context.api.searchBreadcrumbs({ tag: \"note\", sort: \"newest\", schema_name: null });\n  \
                  return { count: found.length };\n}\n";
    let tool = json!({"title": "Counts notes", "schema_name": "tool.code.v1", "tags": ["tool"], "context": {
        "name": "count_notes", "description": "Counts notes", "code": {"language": "javascript", "source": source},
        "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        "examples": [{"description": "Nothing in", "input": {}, "output": {"count": 1}}]}});
    assert_eq!(ask(&base, Method::POST, "/breadcrumbs", &token, tool).await.status(), StatusCode::CREATED);
    assert_eq!(up.json(&["call", "count_notes", "{}"])["output"], json!({"count": 1}));
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// Calls a model as RCRT's tool for OpenRouter does: the request names a configuration, which names
/// the key.
const CHAT: &str = r"
interface Context { api: any; request: any; secrets: Record<string, string> }

export async function execute(input: any, context: Context): Promise<object> {
  const record = await context.api.getBreadcrumb(input.config_id ?? context.request.trigger_event?.context?.config_id);
  const config = record.context.config;
  const secret = await context.api.getSecret(config.apiKeySecretId, 'chat with a model');
  const response = await fetch('http://ADDRESS/v1/chat/completions', {
    method: 'POST',
    headers: { 'Authorization': `Bearer ${secret.value}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ model: config.defaultModel, messages: input.messages }),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const data = await response.json();
  return { content: data.choices[0].message.content, model: data.model, usage: data.usage };
}
";

/// The tool's record as in RCRT's `bootstrap-breadcrumbs`.
fn chat(model: SocketAddr) -> Value {
    json!({
        "schema_name": "tool.code.v1",
        "title": "Chat (Self-Contained)",
        "description": "Chats with a model",
        "semantic_version": "1.0.0",
        "tags": ["tool", "tool:chat", "workspace:tools", "self-contained"],
        "llm_hints": {"include": ["name", "description"], "exclude": ["code"]},
        "context": {
            "name": "chat",
            "description": "Chats with a model",
            "code": {"language": "typescript", "source": CHAT.replace("ADDRESS", &model.to_string())},
            "input_schema": {"type": "object", "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
                "required": ["messages"]},
            "output_schema": {"type": "object", "required": ["content", "model", "usage"],
                "properties": {"content": {"type": "string"}, "model": {"type": "string"}, "usage": {"type": "object"}}},
            "permissions": {"net": [model.to_string()], "read": false, "write": false, "env": false, "run": false,
                "ffi": false, "hrtime": false},
            "limits": {"timeout_ms": 60000, "memory_mb": 128, "cpu_percent": 50},
            "ui_schema": {"configurable": true, "config_fields": [{"key": "apiKeySecretId", "ui_type": "secret-select"}]},
            "category": "llm",
            "examples": [{"title": "Hello", "input": {"messages": [{"role": "user", "content": "Hello"}]},
                "output": {"content": "Hello", "model": "acme/large", "usage": {}}, "explanation": "One message"}],
        },
    })
}

type ModelRequest = (HeaderMap, Value);

/// A model's API, and the requests that it receives.
async fn model(tasks: &mut JoinSet<()>) -> (SocketAddr, Receiver<ModelRequest>) {
    async fn answer(
        State(asked): State<Sender<ModelRequest>>,
        headers: HeaderMap,
        Json(body): Json<Value>,
    ) -> Json<Value> {
        let answer = json!({"model": body["model"], "choices": [{"message": {"role": "assistant", "content": "4"}}],
            "usage": {"total_tokens": 12}});
        asked.send((headers, body)).await.unwrap();
        Json(answer)
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, asks) = channel(8);
    let app = Router::new().route("/v1/chat/completions", post(answer)).with_state(asked);
    tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
    (address, asks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_from_a_tools_configuration_reaches_the_model() {
    const KEY: &str = "sk-or-v1-0123456789abcdef";
    let (folder, mut tasks) = (TempDir::new().unwrap(), JoinSet::new());
    let (model, mut asks) = model(&mut tasks).await;
    let allowed = format!("chat={model}");
    let arguments =
        ["up", "--compat", "rcrt", "--auth", "open", "--listen", "127.0.0.1:0", "--allow-private-host", &allowed];
    let up = Running::start(&folder.path().join("data"), &arguments);
    let base = up.api().to_owned();
    let token = token(&base).await;
    let created = async |path: &str, body: Value| created(&base, &token, path, body).await;
    let listed = async |query: &str| -> Vec<Value> {
        let path = format!("/breadcrumbs?include_context=true&{query}");
        ask(&base, Method::GET, &path, &token, Value::Null).await.json().await.unwrap()
    };
    let catalogs = ask(&base, Method::GET, "/events/stream?tag=catalog:rcrt", &token, Value::Null).await;

    created("/breadcrumbs", chat(model)).await;
    // As RCRT's dashboard saves a key, and then the tool's form.
    let secret = created("/secrets", json!({"name": "OpenRouter key", "value": KEY, "scope_type": "global"})).await;
    let config = json!({"title": "chat Configuration", "schema_name": "tool.config.v1",
        "tags": ["tool:config", "tool:chat", "workspace:tools"],
        "context": {"tool_name": "chat", "last_updated": "2025-10-29T12:00:00.000Z",
            "config": {"apiKeySecretId": secret["id"], "defaultModel": "acme/large", "maxTokens": 4000}}});
    let config = created("/breadcrumbs", config).await;
    let messages = json!([{"role": "user", "content": "What is 2 + 2?"}]);
    let follow = ask(&base, Method::GET, "/events/stream?tag=request:llm-1", &token, Value::Null).await;
    let request = json!({"title": "LLM request", "schema_name": "tool.request.v1", "tags": ["tool:request", "workspace:tools"],
        "context": {"tool": "chat", "config_id": config["id"], "input": {"messages": messages}, "requestId": "llm-1",
            "requestedBy": "agent"}});
    created("/breadcrumbs", request).await;

    wait_for_event(follow, |event| event["schema_name"] == "tool.response.v1").await;
    let responses = listed("schema_name=tool.response.v1&tag=request:llm-1").await;
    let response = &responses[0]["context"];
    assert_eq!((responses.len(), &response["status"]), (1, &json!("success")), "{response}");
    assert_eq!(response["output"], json!({"content": "4", "model": "acme/large", "usage": {"total_tokens": 12}}));
    let (headers, body) = asks.try_recv().unwrap();
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(body, json!({"model": "acme/large", "messages": messages}));
    assert!(asks.try_recv().is_err(), "the model is called once");

    let has_chat =
        |context: &Value| context["tools"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "chat"));
    wait_for_event(catalogs, |event| has_chat(&event["context"])).await;
    let catalogs = listed("schema_name=tool.catalog.v1&tag=catalog:rcrt").await;
    assert_eq!((catalogs.len(), has_chat(&catalogs[0]["context"])), (1, true), "{catalogs:?}");
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains(KEY), "{stderr}");
}

/// The included tools name the secret that they need. In RCRT, their configuration does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_from_a_configuration_reaches_the_included_tools() {
    const KEY: &str = "sk-or-v1-0123456789abcdef";
    let (folder, server) = (TempDir::new().unwrap(), ModelServer::start());
    let address = server.address.to_string();
    let arguments = ["up", "--no-seed", "--compat", "rcrt", "--auth", "open", "--listen", "127.0.0.1:0"];
    let up =
        Running::start(&folder.path().join("data"), &[&arguments[..], &["--allow-private-host", &address]].concat());
    let tools = tools_for(folder.path(), &address);
    // The examples name the real hosts.
    let more = ["--no-examples", "--allow-private-host", &address];
    up.run(&[&["bootstrap", tools.to_str().unwrap()], &more[..]].concat()).ends_with(0);
    let base = up.api().to_owned();
    let token = token(&base).await;
    let created = async |path: &str, body: Value| created(&base, &token, path, body).await;
    let secret = created("/secrets", json!({"name": "OpenRouter key", "value": KEY, "scope_type": "global"})).await;
    for tool in ["openrouter", "venice"] {
        let config = json!({"title": format!("{tool} Configuration"), "schema_name": "tool.config.v1",
            "tags": ["tool:config", format!("tool:{tool}"), "workspace:tools"],
            "context": {"tool_name": tool, "config": {
                "apiKeySecretId": secret["id"], "defaultModel": "fine", "baseUrl": format!("http://{address}/v1/")}}});
        let config = created("/breadcrumbs", config).await;
        let follow =
            ask(&base, Method::GET, &format!("/events/stream?tag=request:{tool}-1"), &token, Value::Null).await;
        let request = json!({"title": "LLM request", "schema_name": "tool.request.v1",
            "tags": ["tool:request", "workspace:tools"],
            "context": {"tool": tool, "config_id": config["id"], "requestId": format!("{tool}-1"),
                "input": {"messages": [{"role": "user", "content": "Hello"}]}}});
        created("/breadcrumbs", request).await;
        wait_for_event(follow, |event| event["schema_name"] == "tool.response.v1").await;
        let path = format!("/breadcrumbs?include_context=true&schema_name=tool.response.v1&tag=request:{tool}-1");
        let responses: Vec<Value> = ask(&base, Method::GET, &path, &token, Value::Null).await.json().await.unwrap();
        assert_eq!(responses[0]["context"]["output"]["content"], "Grüß dich", "{responses:?}");
        let seen = server.seen("/v1/chat/completions", "fine").pop().unwrap();
        assert_eq!(seen.authorization, Some(format!("Bearer {KEY}")));
    }
    up.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_reach_a_server_by_name_but_web_sites_do_not() {
    let folder = TempDir::new().unwrap();
    let arguments = ["server", "--compat", "rcrt", "--auth", "open", "--listen", "0.0.0.0:0"];
    let server = Running::start(&folder.path().join("data"), &arguments);
    let base = server.api().to_owned();
    let asked = async |host: &str| {
        let request = Client::new().post(format!("{base}/auth/token")).header("Host", host).json(&token_request());
        request.send().await.unwrap().status()
    };
    assert_eq!(asked("rcrt:8080").await, StatusCode::OK);
    assert_eq!(asked("rcrt.evil.example").await, StatusCode::MISDIRECTED_REQUEST);
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("gets all rights"), "{stderr}");
}

#[test]
fn compat_is_an_option_and_a_variable_of_all_three_commands() {
    for command in ["up", "server", "runner"] {
        let help = rcrt().args([command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains("--compat") && help.contains("RCRT_COMPAT"), "{command}: {help}");
        let wrong = rcrt().arg(command).env("RCRT_COMPAT", "other").output().unwrap();
        assert_eq!(wrong.status.code(), Some(2), "{command}");
    }
}
