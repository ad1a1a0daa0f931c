//! Secrets through the real gate: what a tool can do with a handle, and what it gets to see.

mod answers;
mod filling;
mod handed_on;
mod leaving;

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures::{StreamExt, stream};
use rcrt_breadcrumb::HostEntry;
use rcrt_executors::egress::{Connections, EgressContext, NetRules};
use rcrt_executors::{HeldSecret, Vault};
use rcrt_sandbox::{BodyStream, FetchRequest, FetchResponse, OpError};

use rcrt_test_servers::network::{Network, TestEgress, get, serve};

/// With characters that each encoding treats differently.
pub const VALUE: &str = "sk-live/9f+8~\"Q\\7 =z";

pub fn secret(name: &str, value: &str, hosts: &[&str]) -> HeldSecret {
    let hosts = hosts.iter().map(|host| HostEntry::parse(host).unwrap()).collect();
    HeldSecret { name: name.into(), value: value.into(), hosts, readable: false }
}

/// A call of a tool that can reach every listed host.
pub struct Call {
    pub gate: TestEgress,
    pub rules: NetRules,
    pub vault: Vault,
    connections: Connections,
}

impl Call {
    pub fn new(network: &Network, rules: NetRules, secrets: Vec<HeldSecret>) -> Self {
        Self { gate: network.gate(), rules, vault: Vault::new(secrets).unwrap(), connections: Connections::default() }
    }

    /// What the tool sees for this secret.
    pub fn handle(&self, name: &str) -> String {
        self.vault.shown()[name].clone()
    }

    pub async fn fetch(&self, request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        let Self { gate, rules, vault, connections } = self;
        gate.0.fetch(EgressContext { tool: "tester", rules, vault, connections, origin: None }, request, body).await
    }

    pub async fn refused(&self, request: FetchRequest, body: Option<BodyStream>) -> OpError {
        self.fetch(request, body).await.map(|answer| answer.status).unwrap_err()
    }
}

/// A request as the server received it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub uri: Uri,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A server that records its requests and responds as the test says.
pub struct Service {
    pub port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Service {
    pub async fn new<F, R>(answer: F) -> Self
    where
        F: Fn(Seen) -> R + Clone + Send + Sync + 'static,
        R: IntoResponse + 'static,
    {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let remembered = seen.clone();
        let handle = move |request: Request| {
            let (answer, remembered) = (answer.clone(), remembered.clone());
            async move {
                let one = read(request).await;
                remembered.lock().unwrap().push(one.clone());
                answer(one).into_response()
            }
        };
        let port = serve(Router::new().fallback(any(handle))).await;
        Self { port, seen }
    }

    pub async fn ok() -> Self {
        Self::new(|_| "ok").await
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn last(&self) -> Seen {
        self.seen().pop().unwrap()
    }
}

async fn read(request: Request) -> Seen {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let latin1 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), latin1(value.as_bytes()))).collect();
    Seen { uri: parts.uri, headers, body: String::from_utf8_lossy(&body).into_owned() }
}

pub fn with_headers(url: String, headers: &[(&str, &str)]) -> FetchRequest {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    FetchRequest { headers, ..get(url) }
}

pub fn post(url: String, content_type: &str) -> FetchRequest {
    FetchRequest { method: "POST".into(), ..with_headers(url, &[("content-type", content_type)]) }
}

pub fn body(text: &str) -> Option<BodyStream> {
    // In small chunks, so that no chunk contains a whole handle.
    let pieces: Vec<Result<Bytes, OpError>> =
        text.as_bytes().chunks(7).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Some(stream::iter(pieces).boxed())
}

/// A response in chunks that the server flushes one by one.
pub fn in_pieces(pieces: Vec<Vec<u8>>) -> Response {
    let pieces = stream::iter(pieces).then(|piece| async move {
        tokio::task::yield_now().await;
        Ok::<_, std::convert::Infallible>(Bytes::from(piece))
    });
    Response::new(axum::body::Body::from_stream(pieces))
}
