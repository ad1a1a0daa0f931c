//! The hostile agents: one program, which is another agent at each path.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{StreamExt, stream};
use rcrt_test_servers::network::serve;
use rcrt_test_servers::service::Service;
use serde_json::{Value, json};

use super::attacks;
use crate::world::HOST;

/// What an agent is asked.
pub struct Asked {
    /// `card`, or a method of A2A.
    pub method: String,
    pub id: Value,
    /// The URL of the agent.
    pub url: String,
    /// The port of a service that must not be reached.
    pub inner: u16,
    /// How often the agent was asked this before.
    pub times: usize,
    streams: bool,
}

/// What an agent does when it is asked.
pub enum Answer {
    /// What a good agent does.
    Usual,
    /// It never responds.
    Never,
    Response(Response),
}

pub struct Hostile {
    pub port: u16,
    pub inner: Service,
}

struct Shared {
    port: Mutex<u16>,
    inner: u16,
    /// How often each agent was asked each thing.
    asked: Mutex<BTreeMap<(String, String), usize>>,
}

impl Hostile {
    pub async fn new() -> Self {
        let inner = Service::ok().await;
        let shared = Arc::new(Shared { port: Mutex::default(), inner: inner.port, asked: Mutex::default() });
        let port = serve(Router::new().fallback(any(answer)).with_state(shared.clone())).await;
        *shared.port.lock().unwrap() = port;
        Self { port, inner }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, uri: Uri, body: String) -> Response {
    let name = uri.path().split('/').nth(1).unwrap_or_default().to_owned();
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let method = body["method"].as_str().unwrap_or("card").to_owned();
    let times = {
        let mut asked = shared.asked.lock().unwrap();
        let times = asked.entry((name.clone(), method.clone())).or_default();
        *times += 1;
        *times - 1
    };
    let url = format!("http://{HOST}:{}/{name}", shared.port.lock().unwrap());
    let Some(attack) = attacks::all().find(|attack| attack.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let streams = name.starts_with("stream-");
    let asked = Asked { method, id: body["id"].clone(), url, inner: shared.inner, times, streams };
    match (attack.answer)(&asked) {
        Answer::Usual => asked.usual(),
        Answer::Never => std::future::pending().await,
        Answer::Response(response) => response,
    }
}

impl Asked {
    /// Misbehaves when this is asked only.
    pub fn on(&self, method: &str, answer: impl FnOnce(&Self) -> Response) -> Answer {
        if self.method == method { Answer::Response(answer(self)) } else { Answer::Usual }
    }

    /// The card of a good agent.
    pub fn card(&self) -> Value {
        self.card_at(&format!("{}/rpc", self.url))
    }

    /// The card of an agent at this URL.
    pub fn card_at(&self, url: &str) -> Value {
        let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        json!({"name": "Hostile", "description": "An agent.", "version": "1", "supportedInterfaces": [interface],
            "capabilities": {"streaming": self.streams}, "skills": [{"id": "do", "name": "Do"}]})
    }

    pub fn result(&self, result: Value) -> Response {
        self.answer(json!({"result": result}))
    }

    pub fn error(&self, code: i32, text: &str) -> Response {
        self.answer(json!({"error": {"code": code, "message": text}}))
    }

    /// These members, in a response of JSON-RPC.
    pub fn answer(&self, mut members: Value) -> Response {
        members["jsonrpc"] = "2.0".into();
        members["id"] = self.id.clone();
        reply(members.to_string())
    }

    /// An event for each of these results.
    pub fn events(&self, results: impl IntoIterator<Item = Value>) -> Response {
        let event = |result: Value| format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": self.id, "result": result}));
        events(results.into_iter().map(event).collect::<Vec<_>>().concat())
    }

    fn usual(&self) -> Response {
        match self.method.as_str() {
            "card" => reply(self.card().to_string()),
            "SendMessage" => self.result(json!({"task": task("WORKING")})),
            "SendStreamingMessage" => self.events([json!({"task": task("WORKING")})]),
            "GetTask" => self.result(done(json!([{"text": "done"}]))),
            method => self.error(-32601, &format!("{method} is not known")),
        }
    }
}

/// A task in this state.
pub fn task(state: &str) -> Value {
    said(state, "")
}

/// The same, with a message.
pub fn said(state: &str, text: &str) -> Value {
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]});
    json!({"id": "t1", "contextId": "c1", "status": {"state": format!("TASK_STATE_{state}"), "message": message}})
}

/// A completed task whose result has these parts.
pub fn done(parts: Value) -> Value {
    let artifact = json!({"artifactId": "a", "parts": parts});
    json!({"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [artifact]})
}

pub fn reply(body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}

pub fn events(text: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], text.into()).into_response()
}

pub fn redirect(location: impl Into<String>) -> Response {
    (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location.into())]).into_response()
}

/// A response with these bytes, whose body then never ends.
pub fn endless(kind: &'static str, start: &'static str) -> Response {
    let start = stream::iter([Ok::<_, std::io::Error>(start)]);
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(start.chain(stream::pending()))).into_response()
}

/// A response with these bytes, and then others without end.
pub fn flood(kind: &'static str, start: &'static str, then: &'static str) -> Response {
    // Large pieces: in small ones, the limit is reached too late on a busy machine.
    let pieces = stream::iter([start.to_owned()]).chain(stream::repeat(then.repeat(256))).map(Ok::<_, std::io::Error>);
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(pieces)).into_response()
}

/// 64 MiB of spaces in some kilobytes.
pub fn bomb() -> Response {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let spaces = vec![b' '; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&spaces).unwrap();
    }
    let body = encoder.finish().unwrap();
    ([(header::CONTENT_TYPE, "application/json"), (header::CONTENT_ENCODING, "gzip")], body).into_response()
}
