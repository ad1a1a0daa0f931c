//! A client that writes each message itself.

use futures::StreamExt;
use futures::stream::BoxStream;
use rcrt_breadcrumb::{Annotations, Catalog, EventStream, NewBreadcrumb, Registration, ToolSource};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::World;
use crate::invoke::Scene;
use crate::tools::publish;

pub const MODERN: &str = "2026-07-28";

/// A tool of the catalog.
pub fn tool(name: &str, parameters: Value) -> Registration {
    Registration {
        name: name.into(),
        description: format!("What {name} does."),
        parameters,
        output_schema: None,
        source: ToolSource::Native,
        annotations: Annotations::default(),
        deprecated: None,
        tags: Vec::new(),
        tool_id: Uuid::from_u128(5),
        tool_version: 1,
    }
}

/// Writes a catalog with these tools as a runner does.
pub async fn offer(world: &World, tenant: Uuid, tools: Vec<Registration>) {
    publish(world, tenant, &Catalog::new(tools, Vec::new())).await;
}

/// Writes a record as a runner.
pub async fn create(world: &World, tenant: Uuid, record: NewBreadcrumb) -> Uuid {
    world.runner(tenant).create(record, None).await.unwrap().id
}

/// The events of the tenant, as a runner gets them.
pub async fn events(scene: &Scene) -> EventStream {
    scene.world.runner(scene.tenant).events(None).await.unwrap()
}

/// Returns once the call of this request is cancelled.
pub async fn cancelled(events: &mut EventStream, request: Uuid) {
    loop {
        let event = events.next().await.unwrap().unwrap();
        if event.breadcrumb_id == request && event.context.get("cancel_requested") == Some(&json!(true)) {
            return;
        }
    }
}

/// A scene with these tools.
pub async fn scene(tools: Vec<Registration>) -> Scene {
    let scene = Scene::start().await;
    offer(&scene.world, scene.tenant, tools).await;
    scene
}

/// A request of the revision 2026-07-28.
pub fn modern(world: &World, token: &str, method: &str, params: Value) -> RequestBuilder {
    with_capabilities(world, token, method, params, json!({}))
}

pub fn with_capabilities(
    world: &World,
    token: &str,
    method: &str,
    mut params: Value,
    capabilities: Value,
) -> RequestBuilder {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    let name = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str().map(str::to_owned));
    let request = post(world, token, &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Method", method);
    match name {
        Some(name) => request.header("Mcp-Name", name),
        None => request,
    }
}

pub fn post(world: &World, token: &str, message: &Value) -> RequestBuilder {
    world.request("POST", "/mcp", token).header("Accept", "application/json, text/event-stream").json(message)
}

/// The JSON-RPC messages of a response, as they arrive.
pub struct Messages {
    pub status: StatusCode,
    pub session: Option<String>,
    is_stream: bool,
    parts: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    read: String,
}

impl Messages {
    pub async fn of(request: RequestBuilder) -> Self {
        let response: Response = request.send().await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let is_stream = header("content-type").is_some_and(|media| media == "text/event-stream");
        if is_stream {
            assert_eq!(header("x-accel-buffering").as_deref(), Some("no"));
        }
        let (status, session) = (response.status(), header("mcp-session-id"));
        Self { status, session, is_stream, parts: response.bytes_stream().boxed(), read: String::new() }
    }

    /// The next message; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if self.is_stream
                && let Some((event, rest)) = self.read.split_once("\n\n")
            {
                let data: String = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                self.read = rest.into();
                if !data.trim().is_empty() {
                    return Some(serde_json::from_str(&data).unwrap());
                }
                continue;
            }
            match self.parts.next().await {
                Some(part) => self.read.push_str(std::str::from_utf8(&part.unwrap()).unwrap()),
                None if self.read.trim().is_empty() => return None,
                None => return serde_json::from_str(&std::mem::take(&mut self.read)).ok(),
            }
        }
    }
}

/// The next notification with this method. Changes from shortly before can be notified too.
pub async fn notified(messages: &mut Messages, method: &str) -> Value {
    loop {
        let message = messages.next().await.expect("a notification");
        if message["method"] == method {
            return message;
        }
        let is_change = ["notifications/tools/list_changed", "notifications/resources/updated"];
        assert!(is_change.iter().any(|change| message["method"] == *change), "{message}");
    }
}

/// The one message of a response.
pub async fn answer(request: RequestBuilder) -> Value {
    let mut messages = Messages::of(request).await;
    let message = messages.next().await.expect("a message");
    assert_eq!(messages.next().await, None);
    message
}

/// The result of a request.
pub async fn result(request: RequestBuilder) -> Value {
    let message = answer(request).await;
    assert_eq!((&message["jsonrpc"], &message["id"]), (&json!("2.0"), &json!(7)), "{message}");
    assert!(message["error"].is_null(), "{message}");
    message["result"].clone()
}

/// The error of a request.
pub async fn error(request: RequestBuilder) -> (u16, Value) {
    let mut messages = Messages::of(request).await;
    let message = messages.next().await.expect("a message");
    assert_eq!(message["id"], 7, "{message}");
    assert!(message["result"].is_null(), "{message}");
    (messages.status.as_u16(), message["error"].clone())
}
