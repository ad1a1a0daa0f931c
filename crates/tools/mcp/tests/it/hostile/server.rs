//! The hostile servers: one program, which is another server at each path.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures::StreamExt;
use rcrt_test_servers::network::serve;
use rcrt_test_servers::service::Service;
use serde_json::{Value, json};

use super::attacks::ATTACKS;
use super::calls::CALLS;

/// A message to a hostile server.
pub struct Message {
    pub method: String,
    pub id: Value,
    pub params: Value,
    /// The port of a service that must not be reached.
    pub inner: u16,
    /// How many lists of tools it was asked for before.
    pub lists: usize,
}

/// What a server does with a message.
pub enum Answer {
    /// What a good server does.
    Usual,
    /// It never responds.
    Never,
    Response(Response),
}

pub struct Hostile {
    pub port: u16,
    pub inner: Service,
    shared: Arc<Shared>,
}

struct Shared {
    inner: u16,
    /// How often each server was asked for its tools.
    lists: Mutex<BTreeMap<String, usize>>,
}

impl Hostile {
    pub async fn new() -> Self {
        let inner = Service::ok().await;
        let shared = Arc::new(Shared { inner: inner.port, lists: Mutex::default() });
        let port = serve(Router::new().fallback(any(answer)).with_state(shared.clone())).await;
        Self { port, inner, shared }
    }

    pub fn lists(&self, server: &str) -> usize {
        self.shared.lists.lock().unwrap().get(server).copied().unwrap_or_default()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, method: Method, uri: Uri, _: HeaderMap, body: String) -> Response {
    let name = uri.path().trim_start_matches('/').to_owned();
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let message: Value = serde_json::from_str(&body).unwrap();
    let Some(id) = message.get("id").cloned() else { return StatusCode::ACCEPTED.into_response() };
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let lists = {
        let mut lists = shared.lists.lock().unwrap();
        let asked = lists.entry(name.clone()).or_default();
        *asked += usize::from(method == "tools/list");
        asked.saturating_sub(1)
    };
    let message = Message { method, id, params: message["params"].clone(), inner: shared.inner, lists };
    let attack = ATTACKS.iter().find(|attack| attack.name == name).map(|attack| attack.answer);
    let call = CALLS.iter().find(|call| call.name == name).map(|call| call.answer);
    let answer = match (attack, call) {
        (Some(attack), _) => attack(&message),
        (None, Some(call)) if message.method == "tools/call" => Answer::Response(call(&message)),
        _ => Answer::Usual,
    };
    match answer {
        Answer::Usual => usual(&message),
        Answer::Never => std::future::pending().await,
        Answer::Response(response) => response,
    }
}

/// A server of the older era with one tool.
fn usual(message: &Message) -> Response {
    match message.method.as_str() {
        "initialize" => message.result(initialized("2025-06-18")),
        "tools/list" => message.result(json!({"tools": [tool("attack")]})),
        method => message.error(-32601, &format!("{method} is not known")),
    }
}

pub fn initialized(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "hostile", "version": "1"},
    })
}

pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": "A tool.", "inputSchema": {"type": "object"}})
}

impl Message {
    pub fn is(&self, method: &str) -> bool {
        self.method == method
    }

    pub fn result(&self, result: Value) -> Response {
        reply(json!({"jsonrpc": "2.0", "id": self.id, "result": result}).to_string())
    }

    pub fn text(&self, text: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "result": {"content": [{"type": "text", "text": text}]}})
    }

    pub fn error(&self, code: i32, text: &str) -> Response {
        reply(json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": code, "message": text}}).to_string())
    }
}

pub fn reply(body: impl Into<Body>) -> Response {
    ([("content-type", "application/json")], body.into()).into_response()
}

/// A response with these bytes, whose body then never ends.
pub fn endless(kind: &'static str, start: &'static str) -> Response {
    let start = futures::stream::iter([Ok::<_, std::io::Error>(start)]);
    ([("content-type", kind)], Body::from_stream(start.chain(futures::stream::pending()))).into_response()
}

/// A response with these bytes, repeated without end.
pub fn flood(start: &'static str, then: &'static str) -> Response {
    // Large pieces: in small ones, the limit is reached too late on a busy machine.
    let pieces = futures::stream::iter([start.to_owned()]).chain(futures::stream::repeat(then.repeat(256)));
    reply(Body::from_stream(pieces.map(Ok::<_, std::io::Error>)))
}

/// Events, one for each message.
pub fn events(messages: impl IntoIterator<Item = Value>) -> Response {
    let events: Vec<String> =
        messages.into_iter().map(|message| format!("event: message\ndata: {message}\n\n")).collect();
    let events = events.concat();
    ([("content-type", "text/event-stream")], events).into_response()
}
