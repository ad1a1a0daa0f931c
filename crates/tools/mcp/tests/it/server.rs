//! A small MCP server over HTTP, of either era, that a test can change and make misbehave.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rcrt_test_servers::network::LOOPBACK;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, revision 2025-06-18.
    Legacy,
    /// Stateless, revision 2026-07-28.
    Modern,
    /// HTTP+SSE, revision 2024-11-05.
    Events,
}

pub struct Server {
    pub port: u16,
    shared: Arc<Shared>,
}

/// Returns the response to a message that the server refuses.
type Guard = Arc<dyn Fn(&HeaderMap, &Value) -> Option<Response> + Send + Sync>;

struct Shared {
    era: Mutex<Era>,
    tools: Mutex<Vec<Value>>,
    /// What its instructions, resources, prompts and errors say.
    said: Mutex<String>,
    guard: Mutex<Option<Guard>>,
    /// Every message, in order, with its Authorization.
    seen: watch::Sender<Vec<(Value, Option<String>)>>,
    /// Events of the open stream of HTTP+SSE, or of the subscription of 2026-07-28.
    events: Mutex<Option<mpsc::Sender<String>>>,
    /// The id of the subscription.
    subscription: Mutex<Value>,
    /// Whether it says that it announces changes.
    announces: AtomicBool,
    /// How long a list is valid, in ms, from 2026-07-28 on.
    ttl: AtomicU64,
    /// Whether the calls of `hold` end.
    released: watch::Sender<bool>,
}

pub fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"text": {"type": "string", "description": "Any text."}},
        },
    })
}

/// One tool for each behaviour of `call`.
fn usual() -> Vec<Value> {
    let mut tools: Vec<Value> =
        ["echo", "fail", "picture", "wait", "progress", "drop"].map(|name| tool(name, &format!("Does {name}."))).into();
    let mut structured = tool("structured", "Returns an object.");
    structured["outputSchema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    structured["annotations"] = json!({"title": "Structured", "readOnlyHint": true, "idempotentHint": true});
    tools.push(structured);
    tools
}

impl Server {
    pub async fn new(era: Era) -> Self {
        Self::on(era, TcpListener::bind((LOOPBACK, 0)).await.unwrap())
    }

    pub fn on(era: Era, listener: TcpListener) -> Self {
        let shared = Arc::new(Shared {
            era: Mutex::new(era),
            tools: Mutex::new(usual()),
            said: Mutex::new("Use it well.".to_owned()),
            guard: Mutex::default(),
            seen: watch::Sender::default(),
            events: Mutex::default(),
            subscription: Mutex::default(),
            announces: AtomicBool::new(false),
            ttl: AtomicU64::new(300_000),
            released: watch::Sender::default(),
        });
        let router = match era {
            Era::Events => {
                Router::new().route("/mcp", get(stream).post(refuse)).route("/messages", post(answer_by_event))
            }
            _ => Router::new().route("/mcp", post(answer)),
        };
        let router = router.with_state(shared.clone());
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, shared }
    }

    /// Changes the list of tools.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Value>)) {
        change(&mut self.shared.tools.lock().unwrap());
    }

    /// From now on it is of this era, which has the same paths.
    pub fn upgrade(&self, era: Era) {
        *self.shared.era.lock().unwrap() = era;
    }

    /// Says to new connections that it announces changes of its list.
    pub fn announces_changes(&self) {
        self.shared.announces.store(true, Ordering::SeqCst);
    }

    /// Announces a change of its list on the open stream.
    pub async fn announce(&self) {
        let id = self.shared.subscription.lock().unwrap().clone();
        let events = self.shared.events.lock().unwrap().clone().expect("a stream is open");
        events.send(event(&list_changed(&id))).await.unwrap();
    }

    /// How long its lists are valid from now on.
    pub fn list_is_valid(&self, ttl_ms: u64) {
        self.shared.ttl.store(ttl_ms, Ordering::SeqCst);
    }

    /// Ends the calls of `hold`.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Ends the stream of HTTP+SSE.
    pub fn end_stream(&self) {
        drop(self.shared.events.lock().unwrap().take());
    }

    /// Changes what its texts say.
    pub fn say(&self, text: &str) {
        text.clone_into(&mut self.shared.said.lock().unwrap());
    }

    /// Refuses the messages that the guard responds to.
    pub fn guard(&self, guard: impl Fn(&HeaderMap, &Value) -> Option<Response> + Send + Sync + 'static) {
        *self.shared.guard.lock().unwrap() = Some(Arc::new(guard));
    }

    /// The messages of this method, with the Authorization of each.
    pub fn seen(&self, method: &str) -> Vec<(Value, Option<String>)> {
        let seen = self.shared.seen.borrow();
        seen.iter().filter(|(message, _)| message["method"] == method).cloned().collect()
    }

    /// All messages.
    pub fn seen_all(&self) -> Vec<Value> {
        self.shared.seen.borrow().iter().map(|(message, _)| message.clone()).collect()
    }

    /// Waits for the response to a request of the server.
    pub async fn response(&self, id: &str) -> Value {
        let mut seen = self.shared.seen.subscribe();
        let is_it = |(message, _): &&(Value, Option<String>)| message["id"] == id && message.get("method").is_none();
        let found = seen.wait_for(|seen| seen.iter().any(|one| is_it(&one)));
        let found = tokio::time::timeout(rcrt_test_servers::PATIENCE, found).await.expect("it is sent").unwrap();
        found.iter().find(is_it).unwrap().0.clone()
    }

    /// Waits for a message of this method.
    pub async fn saw(&self, method: &str) -> Value {
        let mut seen = self.shared.seen.subscribe();
        let is_it = |(message, _): &&(Value, Option<String>)| message["method"] == method;
        let found = seen.wait_for(|seen| seen.iter().any(|one| is_it(&one)));
        let found = tokio::time::timeout(rcrt_test_servers::PATIENCE, found).await.expect("it is sent").unwrap();
        found.iter().find(is_it).unwrap().0.clone()
    }
}

fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// `id`: that of the subscription, if there is one.
fn list_changed(id: &Value) -> Value {
    let mut announced = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    if !id.is_null() {
        announced["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] = id.clone();
    }
    announced
}

/// A stream of events that stays open, with a first one.
async fn opened(shared: &Shared, first: String) -> Response {
    let (sender, receiver) = mpsc::channel(100);
    sender.send(first).await.unwrap();
    *shared.events.lock().unwrap() = Some(sender);
    let events = futures::stream::unfold(receiver, async |mut receiver| {
        let event = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(event), receiver))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
}

/// The stream of HTTP+SSE, whose first event names the URL for messages.
async fn stream(State(shared): State<Arc<Shared>>) -> Response {
    opened(&shared, "event: endpoint\ndata: /messages?session=1\n\n".to_owned()).await
}

/// The subscription of 2026-07-28, whose first event acknowledges it.
async fn subscribed(shared: &Shared, id: Value) -> Response {
    let params = json!({
        "_meta": {"io.modelcontextprotocol/subscriptionId": id},
        "notifications": {"toolsListChanged": true},
    });
    let acknowledged =
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
    *shared.subscription.lock().unwrap() = id;
    opened(shared, event(&acknowledged)).await
}

/// A server of HTTP+SSE takes no messages at the URL of its stream.
async fn refuse(State(shared): State<Arc<Shared>>, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    shared.seen.send_modify(|seen| seen.push((message, None)));
    StatusCode::METHOD_NOT_ALLOWED.into_response()
}

async fn answer_by_event(state: State<Arc<Shared>>, headers: HeaderMap, body: String) -> Response {
    let shared = state.0.clone();
    let response = answer(state, headers, body).await;
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    if !body.is_empty() {
        let events = shared.events.lock().unwrap().clone().unwrap();
        events.send(event(&serde_json::from_slice(&body).unwrap())).await.unwrap();
    }
    StatusCode::ACCEPTED.into_response()
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    let authorization = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    shared.seen.send_modify(|seen| seen.push((message.clone(), authorization)));
    let guard = shared.guard.lock().unwrap().clone();
    if let Some(refused) = guard.and_then(|guard| guard(&headers, &message)) {
        return refused;
    }
    let (said, era) = (shared.said.lock().unwrap().clone(), *shared.era.lock().unwrap());
    let id = message.get("id").filter(|_| message.get("method").is_some());
    let Some(id) = id.cloned() else { return StatusCode::ACCEPTED.into_response() };
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let error = |code: i32, text: &str| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}});
    let mut capabilities = json!({"tools": {}, "resources": {}, "prompts": {}});
    if shared.announces.load(Ordering::SeqCst) {
        capabilities["tools"]["listChanged"] = true.into();
    }
    let reply = match (message["method"].as_str().unwrap(), era) {
        ("server/discover", Era::Modern) => result(json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "instructions": said,
            "ttlMs": 0,
            "cacheScope": "private",
        })),
        ("initialize", Era::Legacy | Era::Events) => result(json!({
            "protocolVersion": if era == Era::Legacy { "2025-06-18" } else { "2024-11-05" },
            "capabilities": capabilities,
            "serverInfo": {"name": "fixture", "version": "1.0"},
            "instructions": said,
        })),
        ("tools/list", era) => {
            let mut list = json!({"tools": *shared.tools.lock().unwrap()});
            if era == Era::Modern {
                list["resultType"] = "complete".into();
                list["ttlMs"] = shared.ttl.load(Ordering::SeqCst).into();
                list["cacheScope"] = "private".into();
            }
            result(list)
        }
        ("resources/read", _) if message["params"]["uri"] == "doc://said" => {
            result(json!({"contents": [{"uri": "doc://said", "text": said}]}))
        }
        ("prompts/get", _) if message["params"]["name"] == "fail" => error(-32603, &said),
        ("prompts/get", _) => {
            let content = json!({"type": "text", "text": said});
            result(json!({"description": said, "messages": [{"role": "user", "content": content}]}))
        }
        ("resources/list", _) => result(json!({"resources": [{"uri": "doc://one", "name": "One"}]})),
        ("resources/read", _) => result(json!({"contents": [{"uri": "doc://one", "text": "the document"}]})),
        ("prompts/list", _) => result(json!({"prompts": [{"name": "greet", "description": "A greeting."}]})),
        ("subscriptions/listen", Era::Modern) => return subscribed(&shared, id.clone()).await,
        ("tools/call", _) if message["params"]["name"] == "hold" => {
            shared.released.subscribe().wait_for(|released| *released).await.unwrap();
            result(json!({"content": [{"type": "text", "text": "held"}]}))
        }
        ("tools/call", _) => match call(&message["params"], &message["params"]["_meta"], &id).await {
            Ok(Ok(returned)) => result(returned),
            Ok(Err((code, text))) => error(code, &text),
            Err(response) => return response,
        },
        (method, _) => error(-32601, &format!("{method} is not known")),
    };
    ([("content-type", "application/json")], reply.to_string()).into_response()
}

/// A question for a person. Each required field has a default.
fn form() -> Value {
    let fields = json!({
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 36},
        "note": {"type": "string"},
    });
    let schema = json!({"type": "object", "properties": fields, "required": ["name"]});
    json!({"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": schema}})
}

type Returned = Result<Value, (i32, String)>;

/// `Err`: the whole response.
#[allow(clippy::result_large_err)]
async fn call(params: &Value, meta: &Value, id: &Value) -> Result<Returned, Response> {
    let text = params["arguments"]["text"].as_str().unwrap_or("nothing");
    Ok(match params["name"].as_str().unwrap() {
        "echo" => Ok(json!({"content": [{"type": "text", "text": text}]})),
        "fail" => Ok(json!({"isError": true, "content": [{"type": "text", "text": format!("cannot do {text}")}]})),
        "picture" => Ok(json!({"content": [
            {"type": "text", "text": "look"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "doc://one", "name": "One"},
        ]})),
        "structured" => Ok(json!({"content": [{"type": "text", "text": "7"}], "structuredContent": {"n": 7}})),
        "wait" => std::future::pending().await,
        // Questions of 2026-07-28, which the tool returns.
        "ask" if params["inputResponses"].is_null() => Ok(json!({
            "resultType": "input_required",
            "inputRequests": {"who": form(), "where": {"method": "roots/list"}},
            "requestState": "opaque",
        })),
        "ask" => {
            let given = json!({"responses": params["inputResponses"], "state": params["requestState"]});
            Ok(json!({"content": [{"type": "text", "text": given.to_string()}]}))
        }
        "later" if params["requestState"].is_null() => {
            Ok(json!({"resultType": "input_required", "requestState": "later"}))
        }
        "later" => Ok(json!({"content": [{"type": "text", "text": "now"}]})),
        "sample" => {
            let content = json!({"type": "text", "text": "Hello?"});
            let messages = json!([{"role": "user", "content": content}]);
            let question =
                json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 9}});
            Ok(json!({"resultType": "input_required", "inputRequests": {"model": question}}))
        }
        "again" => Ok(json!({"resultType": "input_required", "inputRequests": {"who": form()}})),
        // Requests of the server, as before 2026-07-28.
        "request" => {
            let mut asked = form();
            (asked["jsonrpc"], asked["id"]) = (json!("2.0"), json!("form"));
            let done = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "done"}]}});
            let events = event(&asked) + &event(&done);
            return Err(([("content-type", "text/event-stream")], events).into_response());
        }
        "announce" => {
            let done = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}});
            let events = event(&list_changed(&Value::Null)) + &event(&done);
            return Err(([("content-type", "text/event-stream")], events).into_response());
        }
        "drop" => {
            // The body is shorter than it says.
            let broken = Response::builder().header("content-type", "application/json").header("content-length", "100");
            return Err(broken
                .body(Body::from_stream(futures::stream::iter([
                    Ok(bytes::Bytes::from("{\"jsonrpc\"")),
                    Err(std::io::Error::other("gone")),
                ])))
                .unwrap());
        }
        "progress" => {
            let progress = json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": meta["progressToken"], "progress": 1, "total": 2, "message": "half"},
            });
            let done = json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "done"}]}});
            let events = event(&progress) + &event(&done);
            return Err(([("content-type", "text/event-stream")], events).into_response());
        }
        name => Err((-32602, format!("there is no tool {name}"))),
    })
}
