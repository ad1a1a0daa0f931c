//! Requests to one agent, through the egress gate, within limits.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rcrt_a2a_types::{A2aError, JSON_RPC, MEDIA_TYPE, Message, Reply, Task, VERSION, VERSION_HEADER, methods};
use rcrt_breadcrumb::{FetchRequest, OpError, Redirect};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Origin, Vault};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::agent::Interface;
use crate::text::line;

/// The most bytes of a card, and of any other answer.
pub(crate) const MAX_CARD: usize = 256 * 1024;
const MAX_ANSWER: usize = 1024 * 1024;
/// Redirects of a request for a card. Messages are not redirected.
const CARD_REDIRECTS: usize = 3;

/// Why an agent gave no usable answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RemoteError {
    /// The gate does not let the request out.
    #[error("{0}")]
    Refused(String),
    /// Nothing came back, so the agent may have acted or not.
    #[error("{0}")]
    Network(String),
    #[error("the agent answered with {0}")]
    Status(u16),
    #[error("the agent's answer {0}")]
    Garbage(String),
    #[error("the agent refused: {0}")]
    Agent(A2aError),
}

impl RemoteError {
    /// Whether the agent certainly did not accept the message.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Agent(_)) || matches!(self, Self::Status(status) if *status < 500)
    }
}

/// The way to one agent for one call, or for one look at a task.
pub(crate) struct Remote<'r> {
    pub gate: &'r Egress,
    /// The tool's name in the gate's rules and logs.
    pub tool: &'r str,
    pub rules: NetRules,
    pub vault: Vault,
    pub connections: Connections,
    pub origin: Option<Origin>,
    /// A header of each request, with a handle of the vault.
    pub header: Option<(String, String)>,
    pub time: Duration,
}

impl Remote<'_> {
    /// The text of a card.
    pub async fn card(&self, url: &str) -> Result<Vec<u8>, RemoteError> {
        let request = self.request("GET", url, Redirect::Follow, "application/json");
        let (status, body) = self.exchange(request, None, MAX_CARD).await?;
        if status == 200 { Ok(body) } else { Err(RemoteError::Status(status)) }
    }

    /// Sends a message. The agent is asked to answer at once, and not at the end of the task.
    pub async fn send(&self, interface: &Interface, message: &Message) -> Result<Reply, RemoteError> {
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.ask(interface, methods::SEND, ("POST", "/message:send"), params).await
    }

    pub async fn task(&self, interface: &Interface, id: &str) -> Result<Task, RemoteError> {
        let params = json!({"id": id, "historyLength": 0});
        self.ask(interface, methods::GET, ("GET", &format!("/tasks/{}?historyLength=0", segment(id))), params).await
    }

    pub async fn cancel(&self, interface: &Interface, id: &str) -> Result<Task, RemoteError> {
        let path = format!("/tasks/{}:cancel", segment(id));
        self.ask(interface, methods::CANCEL, ("POST", &path), json!({"id": id})).await
    }

    /// One operation, in the binding of the interface. `rest`: its method and path.
    async fn ask<T: DeserializeOwned>(
        &self,
        interface: &Interface,
        method: &str,
        rest: (&str, &str),
        mut params: Value,
    ) -> Result<T, RemoteError> {
        if let Some(tenant) = &interface.tenant {
            params["tenant"] = json!(tenant);
        }
        let is_rpc = interface.binding == JSON_RPC;
        let answer = if is_rpc {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            self.call("POST", &interface.url, "application/json", Some(&body)).await?
        } else {
            let tenant = interface.tenant.as_ref().map(|tenant| format!("/{}", segment(tenant))).unwrap_or_default();
            let url = format!("{}{tenant}{}", interface.url.trim_end_matches('/'), rest.1);
            self.call(rest.0, &url, MEDIA_TYPE, Some(&params).filter(|_| rest.0 == "POST")).await?
        };
        let Value::Object(mut fields) = answer else { return Err(garbage("is not an object")) };
        if let Some(Value::Object(error)) = fields.get("error") {
            let mut error = A2aError::read(error);
            error.message = line(&error.message, 500);
            return Err(RemoteError::Agent(error));
        }
        let result = if is_rpc { fields.remove("result").unwrap_or_default() } else { Value::Object(fields) };
        T::deserialize(result)
            .map_err(|error| garbage(&format!("is not what A2A describes: {}", line(&error.to_string(), 200))))
    }

    async fn call(&self, method: &str, url: &str, media: &str, body: Option<&Value>) -> Result<Value, RemoteError> {
        let request = self.request(method, url, Redirect::Error, media);
        let (status, answer) = self.exchange(request, body, MAX_ANSWER).await?;
        match serde_json::from_slice::<Value>(&answer) {
            // An error of the protocol says more than its status.
            Ok(answer) if (200..300).contains(&status) || answer.get("error").is_some_and(Value::is_object) => {
                Ok(answer)
            }
            _ if !(200..300).contains(&status) => Err(RemoteError::Status(status)),
            Err(error) => Err(garbage(&format!("is not JSON: {}", line(&error.to_string(), 100)))),
            Ok(_) => Err(RemoteError::Status(status)),
        }
    }

    fn request(&self, method: &str, url: &str, redirect: Redirect, media: &str) -> FetchRequest {
        let mut headers =
            vec![("accept".to_owned(), media.to_owned()), (VERSION_HEADER.to_owned(), VERSION.to_owned())];
        if method == "POST" {
            headers.push(("content-type".into(), media.into()));
        }
        headers.extend(self.header.clone());
        FetchRequest { method: method.into(), url: url.into(), headers, redirect }
    }

    async fn exchange(
        &self,
        request: FetchRequest,
        body: Option<&Value>,
        most: usize,
    ) -> Result<(u16, Vec<u8>), RemoteError> {
        let late = |_| RemoteError::Network(format!("the agent did not answer completely within {:?}", self.time));
        timeout(self.time, self.read(request, body, most)).await.map_err(late)?
    }

    async fn read(
        &self,
        request: FetchRequest,
        body: Option<&Value>,
        most: usize,
    ) -> Result<(u16, Vec<u8>), RemoteError> {
        let context = EgressContext {
            tool: self.tool,
            rules: &self.rules,
            vault: &self.vault,
            connections: &self.connections,
            origin: self.origin,
            observer: None,
        };
        let body = body.map(|body| {
            let text = Bytes::from(body.to_string());
            stream::once(async move { Ok(text) }).boxed()
        });
        let mut response = self
            .gate
            .fetch_following(context, request, body, CARD_REDIRECTS)
            .await
            .map_err(|error| from_gate(&error))?;
        let mut text = Vec::new();
        while let Some(piece) = response.body.try_next().await.map_err(|error| from_gate(&error))? {
            if text.len() + piece.len() > most {
                return Err(garbage(&format!("is larger than {most} bytes")));
            }
            text.extend_from_slice(&piece);
        }
        Ok((response.status, text))
    }
}

fn garbage(why: &str) -> RemoteError {
    RemoteError::Garbage(why.to_owned())
}

fn from_gate(error: &OpError) -> RemoteError {
    let message = line(&error.message, 500);
    match error.name.as_str() {
        "PermissionDenied" => RemoteError::Refused(message),
        "ResourceExhausted" => garbage(&format!("is too large: {message}")),
        _ => RemoteError::Network(message),
    }
}

/// A step of a path.
fn segment(text: &str) -> String {
    let mut step = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            step.push(byte.into());
        } else {
            // Writing into a String cannot fail.
            let _ = write!(step, "%{byte:02X}");
        }
    }
    step
}
