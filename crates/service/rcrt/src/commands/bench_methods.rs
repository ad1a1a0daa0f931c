//! The two ways to make a call under load. Both use only the public API, as an agent does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    ErrorCode, Event, EventKind, EventStream, Events, Records, ResponseStatus, StoreError, ToolRequest, ToolResponse,
    schema_names,
};
use rcrt_client::{Client, Invocation, Invoked};
use rcrt_load::Target;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Maximum time of one call. The server's limit for an invocation is the same.
const PATIENCE: Duration = Duration::from_mins(1);
/// The tag of the calls' records.
const WORKSPACE: &str = "workspace:bench";

/// One way of making a call.
#[async_trait]
pub trait CallMethod: Send + Sync {
    /// Requests a call and waits for its response.
    async fn answer(&self, tool: &str, input: &Value) -> Result<ToolResponse, StoreError>;
}

/// One tool, called again and again with the same input.
pub struct Calls {
    pub method: Box<dyn CallMethod>,
    pub tool: String,
    pub input: Value,
}

impl Calls {
    /// Makes one call. Returns the reason if it failed.
    pub async fn once(&self) -> Result<Option<String>, StoreError> {
        Ok(failure(&self.method.answer(&self.tool, &self.input).await?)
            .map(|reason| format!("{}: {reason}", self.tool)))
    }
}

#[async_trait]
impl Target for Calls {
    async fn call(&self, _number: u64) -> Result<(), String> {
        let response = self.method.answer(&self.tool, &self.input).await.map_err(|error| error.to_string())?;
        failure(&response).map_or(Ok(()), Err)
    }
}

/// The error of a failed response.
fn failure(response: &ToolResponse) -> Option<String> {
    let code = response.error_code.map_or("Error", ErrorCode::as_str);
    let text = || format!("{code}: {}", response.error.as_deref().unwrap_or("no reason given"));
    (response.status == ResponseStatus::Error).then(text)
}

/// One round trip for each call.
pub struct InvokeMethod {
    client: Client,
}

impl InvokeMethod {
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

#[async_trait]
impl CallMethod for InvokeMethod {
    async fn answer(&self, tool: &str, input: &Value) -> Result<ToolResponse, StoreError> {
        let invocation =
            Invocation { input: input.clone(), workspace: Some(WORKSPACE.into()), ..Invocation::default() };
        match self.client.invoke(tool, &invocation, PATIENCE, None).await? {
            Invoked::Answered(response) => Ok(*response),
            Invoked::Waiting { .. } => Err(no_response()),
        }
    }
}

type Waiters = Arc<Mutex<HashMap<String, oneshot::Sender<Arc<Event>>>>>;

/// A request record for each call, and one event stream for all responses.
pub struct EventMethod {
    client: Client,
    /// The waiting callers, by the tag of their response.
    waiting: Waiters,
    follower: JoinHandle<()>,
}

impl EventMethod {
    /// Follows the events from now on.
    pub async fn open(client: Client) -> Result<Self, StoreError> {
        let waiting = Waiters::default();
        let events = client.events(None).await?;
        Ok(Self { client, follower: tokio::spawn(deliver_responses(events, waiting.clone())), waiting })
    }
}

impl Drop for EventMethod {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

#[async_trait]
impl CallMethod for EventMethod {
    async fn answer(&self, tool: &str, input: &Value) -> Result<ToolResponse, StoreError> {
        let id = Uuid::new_v4().to_string();
        let (sender, answer) = oneshot::channel();
        // Before the request is written, so that its response cannot be missed.
        let waiter = WaiterGuard::take(&self.waiting, ToolResponse::tag(&id), sender);
        let record = ToolRequest::record(tool, input.clone(), Some(&id), Some(WORKSPACE));
        let both = async {
            self.client.create(record, Some(&id)).await?;
            answer.await.map_err(|_| StoreError::Unavailable("the event stream ended".into()))
        };
        let event = tokio::time::timeout(PATIENCE, both).await.map_err(|_| no_response())??;
        drop(waiter);
        ToolResponse::deserialize(Value::Object(Arc::unwrap_or_clone(event).context.into()))
            .map_err(|error| StoreError::Internal(format!("the response cannot be read: {error}")))
    }
}

/// A caller's entry in the map of waiters, removed when dropped.
struct WaiterGuard<'w> {
    waiting: &'w Waiters,
    tag: String,
}

impl<'w> WaiterGuard<'w> {
    fn take(waiting: &'w Waiters, tag: String, sender: oneshot::Sender<Arc<Event>>) -> Self {
        waiting.lock().insert(tag.clone(), sender);
        Self { waiting, tag }
    }
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.tag);
    }
}

/// Hands each response to its waiter. When the stream ends permanently, all waiters get an error.
async fn deliver_responses(mut events: EventStream, waiting: Waiters) {
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "the event stream ended");
                break;
            }
        };
        let is_response =
            event.kind == EventKind::Created && event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE);
        if !is_response {
            continue;
        }
        let caller = event.tags.iter().find_map(|tag| waiting.lock().remove(tag));
        if let Some(caller) = caller {
            // The caller may have been cancelled meanwhile.
            let _ = caller.send(event);
        }
    }
    waiting.lock().clear();
}

fn no_response() -> StoreError {
    StoreError::Unavailable(format!("no response within {} s; is a runner running?", PATIENCE.as_secs()))
}
