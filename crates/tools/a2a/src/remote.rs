//! Requests to one agent, through the egress gate, within limits.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rcrt_a2a_types::{JSON_RPC, MEDIA_TYPE, Message, Reply, Task, VERSION, VERSION_HEADER, methods};
use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::{FetchRequest, FetchResponse, Redirect, ToolFailure};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Origin, Vault};
use rcrt_executors::ToolCall;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::agent::Interface;
use crate::answer::{REQUEST_ID, RemoteError, from_gate, garbage, result};
use crate::failures::failed;
use crate::updates::{self, Updates};

/// The most bytes of a card, and of any other answer.
pub(crate) const MAX_CARD: usize = 256 * 1024;
const MAX_ANSWER: usize = 1024 * 1024;
/// The name of every request to an agent, in the operator's lists of hosts and in logs.
pub(crate) const GATE_NAME: &str = "invoke_agent";
const EVENTS: &str = "text/event-stream";
/// The member of a message's configuration with the push configuration.
const PUSH_CONFIG: &str = "taskPushNotificationConfig";
/// Redirects of a request for a card. Messages are not redirected.
const CARD_REDIRECTS: usize = 3;

/// By which rules a card is read, and for whom.
pub(crate) struct CardWay {
    pub rules: NetRules,
    pub origin: Origin,
}

impl CardWay {
    pub fn of(call: &ToolCall) -> Result<Self, ToolFailure> {
        Ok(Self { rules: rules_of(call)?, origin: Origin::from(call) })
    }
}

/// The hosts that the tool can reach, by its own definition.
pub(crate) fn rules_of(call: &ToolCall) -> Result<NetRules, ToolFailure> {
    NetRules::read(&call.definition.permissions.net).map_err(|error| failed(format!("permissions.net: {error}")))
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
    /// The text of a card, and how long it is valid, if the agent says so.
    pub async fn card(&self, url: &str) -> Result<(Vec<u8>, Option<Duration>), RemoteError> {
        let request = self.request("GET", url, Redirect::Follow, "application/json");
        let answer = async {
            let response = self.open(request, None).await?;
            if response.status != 200 {
                return Err(RemoteError::Status(response.status));
            }
            let max_age = header(&response, "cache-control").and_then(max_age);
            Ok((whole(response, MAX_CARD).await?, max_age))
        };
        self.in_time(answer).await
    }

    /// Sends a message. The agent is asked to answer at once, and not at the end of the task.
    /// `push`: where it sends notifications.
    pub async fn send(
        &self,
        interface: &Interface,
        message: &Message,
        push: Option<&Value>,
    ) -> Result<Reply, RemoteError> {
        let mut params = json!({"message": message, "configuration": {"returnImmediately": true}});
        if let Some(push) = push {
            params["configuration"][PUSH_CONFIG] = push.clone();
        }
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

    /// Sends a message, and returns the updates of its task as they come.
    pub async fn stream(
        &self,
        interface: &Interface,
        message: &Message,
        push: Option<&Value>,
    ) -> Result<Updates, RemoteError> {
        let mut params = json!({"message": message});
        if let Some(push) = push {
            params["configuration"] = json!({PUSH_CONFIG: push});
        }
        let (request, body) =
            self.operation(interface, methods::SEND_STREAMING, ("POST", "/message:stream"), params, EVENTS);
        let is_rpc = interface.binding == JSON_RPC;
        let opened = async {
            let response = self.open(request, body.as_ref()).await?;
            let media = header(&response, "content-type").unwrap_or_default().to_ascii_lowercase();
            if (200..300).contains(&response.status) && media.starts_with(EVENTS) {
                return Ok(updates::read(response.body, is_rpc));
            }
            let _: Value = result(json_of(response).await?, is_rpc)?;
            Err(garbage("is not a stream of events"))
        };
        self.in_time(opened).await
    }

    /// One operation, in the binding of the interface. `rest`: its method and path.
    async fn ask<T: DeserializeOwned>(
        &self,
        interface: &Interface,
        method: &str,
        rest: (&str, &str),
        params: Value,
    ) -> Result<T, RemoteError> {
        let is_rpc = interface.binding == JSON_RPC;
        let media = if is_rpc { "application/json" } else { MEDIA_TYPE };
        let (request, body) = self.operation(interface, method, rest, params, media);
        let answer = self.in_time(async { json_of(self.open(request, body.as_ref()).await?).await }).await?;
        result(answer, is_rpc)
    }

    /// The request of an operation, and its body. `accept`: the media type of the answer.
    fn operation(
        &self,
        interface: &Interface,
        method: &str,
        rest: (&str, &str),
        mut params: Value,
        accept: &str,
    ) -> (FetchRequest, Option<Value>) {
        if let Some(tenant) = &interface.tenant {
            params["tenant"] = json!(tenant);
        }
        if interface.binding == JSON_RPC {
            let body = json!({"jsonrpc": "2.0", "id": REQUEST_ID, "method": method, "params": params});
            let mut request = self.request("POST", &interface.url, Redirect::Error, accept);
            request.headers.push(("content-type".into(), "application/json".into()));
            return (request, Some(body));
        }
        let tenant = interface.tenant.as_ref().map(|tenant| format!("/{}", segment(tenant))).unwrap_or_default();
        let url = format!("{}{tenant}{}", interface.url.trim_end_matches('/'), rest.1);
        let mut request = self.request(rest.0, &url, Redirect::Error, accept);
        let body = (rest.0 == "POST").then_some(params);
        if body.is_some() {
            request.headers.push(("content-type".into(), MEDIA_TYPE.into()));
        }
        (request, body)
    }

    fn request(&self, method: &str, url: &str, redirect: Redirect, accept: &str) -> FetchRequest {
        let mut headers =
            vec![("accept".to_owned(), accept.to_owned()), (VERSION_HEADER.to_owned(), VERSION.to_owned())];
        headers.extend(self.header.clone());
        FetchRequest { method: method.into(), url: url.into(), headers, redirect }
    }

    async fn open(&self, request: FetchRequest, body: Option<&Value>) -> Result<FetchResponse, RemoteError> {
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
        let response = self.gate.fetch_following(context, request, body, CARD_REDIRECTS).await;
        response.map_err(|error| from_gate(&error))
    }

    /// Within the time of a request.
    pub async fn in_time<T>(&self, work: impl Future<Output = Result<T, RemoteError>>) -> Result<T, RemoteError> {
        let late = |_| RemoteError::Network(format!("the agent did not answer completely within {:?}", self.time));
        timeout(self.time, work).await.map_err(late)?
    }
}

/// The JSON of an answer. An error of the protocol says more than its status.
async fn json_of(response: FetchResponse) -> Result<Value, RemoteError> {
    let status = response.status;
    let text = whole(response, MAX_ANSWER).await?;
    match serde_json::from_slice::<Value>(&text) {
        Ok(answer) if answer.get("error").is_some_and(Value::is_object) => Ok(answer),
        _ if !(200..300).contains(&status) => Err(RemoteError::Status(status)),
        Ok(answer) => Ok(answer),
        Err(error) => Err(garbage(&format!("is not JSON: {}", line(&error.to_string(), 100)))),
    }
}

async fn whole(mut response: FetchResponse, most: usize) -> Result<Vec<u8>, RemoteError> {
    let mut text = Vec::new();
    while let Some(piece) = response.body.try_next().await.map_err(|error| from_gate(&error))? {
        if text.len() + piece.len() > most {
            return Err(garbage(&format!("is larger than {most} bytes")));
        }
        text.extend_from_slice(&piece);
    }
    Ok(text)
}

fn header<'r>(response: &'r FetchResponse, name: &str) -> Option<&'r str> {
    response.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The `max-age` of a `Cache-Control`.
fn max_age(text: &str) -> Option<Duration> {
    let text = text.to_ascii_lowercase();
    let age = text.split(',').find_map(|directive| directive.trim().strip_prefix("max-age="))?;
    age.trim_matches('"').parse().ok().map(Duration::from_secs)
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
