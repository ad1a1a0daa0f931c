//! Secrets through the real gate: what a tool can do with a handle, and what it gets to see.

mod answers;
mod filling;
mod handed_on;

use axum::body::Bytes;
use axum::response::Response;
use futures::{StreamExt, stream};
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, HostEntry, OpError};
use rcrt_egress::{Connections, HeldSecret, NetRules, Vault};

use rcrt_test_servers::network::{Network, TestEgress, context, get};

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
        gate.0.fetch(context(rules, vault, connections), request, body).await
    }

    pub async fn refused(&self, request: FetchRequest, body: Option<BodyStream>) -> OpError {
        self.fetch(request, body).await.map(|answer| answer.status).unwrap_err()
    }
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
