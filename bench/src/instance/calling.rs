//! Calls as an agent makes them: a request is written, and the response comes on the event stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use rcrt_breadcrumb::{EventKind, EventStream, Events, RESULT_CHARS, ToolRequest, ToolResponse, schema_names};
use rcrt_load::Target;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use url::Url;
use uuid::Uuid;

use super::Instance;

/// A call of a bench takes longer only if something is broken.
const PATIENCE: Duration = Duration::from_mins(2);

type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Map<String, Value>>>>>;

/// One agent: writes requests over HTTP and gets all responses on one event stream.
pub struct Answers {
    http: reqwest::Client,
    records: Url,
    authorization: String,
    waiting: Waiting,
    follower: JoinHandle<()>,
}

impl Answers {
    /// Follows the events of the instance from now on.
    pub async fn follow(instance: &Instance) -> anyhow::Result<Arc<Self>> {
        let events = instance.client().events(None).await.context("the event stream")?;
        let waiting = Waiting::default();
        let http = reqwest::Client::builder().no_proxy().build().context("an HTTP client")?;
        Ok(Arc::new(Self {
            http,
            records: instance.api.join("breadcrumbs")?,
            authorization: format!("Bearer {}", instance.token),
            follower: tokio::spawn(hand_out(events, waiting.clone())),
            waiting,
        }))
    }

    /// Writes a request, waits for the event of its response, and returns the response's context.
    pub async fn call(&self, tool: &str, input: Value) -> Result<Map<String, Value>, String> {
        self.ask(tool, input, None).await
    }

    /// Like `call`, but never splits or truncates the result.
    pub async fn call_for_all(&self, tool: &str, input: Value) -> Result<Map<String, Value>, String> {
        self.ask(tool, input, Some(*RESULT_CHARS.end())).await
    }

    async fn ask(&self, tool: &str, input: Value, chars: Option<u64>) -> Result<Map<String, Value>, String> {
        let id = Uuid::new_v4().to_string();
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().insert(ToolResponse::tag(&id), sender);
        let mut record = ToolRequest::record(tool, input, Some(&id), None);
        if let Some(chars) = chars {
            record.context.insert("max_result_chars".into(), chars.into());
        }
        let body = serde_json::to_vec(&record).map_err(|error| error.to_string())?;
        let written = self
            .http
            .post(self.records.clone())
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .send()
            .await
            .map_err(|error| format!("the request was not written: {error}"))?;
        let status = written.status();
        // Read it completely, so that the connection can be reused.
        let body =
            written.bytes().await.map_err(|error| format!("the response to the request was incomplete: {error}"))?;
        if !status.is_success() {
            return Err(format!("{status}: {}", String::from_utf8_lossy(&body)));
        }
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(context)) => Ok(context),
            Ok(Err(_)) => Err("the event stream closed".into()),
            Err(_) => Err(format!("no response within {} s", PATIENCE.as_secs())),
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

async fn hand_out(mut events: EventStream, waiting: Waiting) {
    while let Some(Ok(event)) = events.next().await {
        if event.kind != EventKind::Created || event.schema_name.as_deref() != Some(schema_names::TOOL_RESPONSE) {
            continue;
        }
        let answer = event.tags.iter().find_map(|tag| waiting.lock().remove(tag));
        if let Some(answer) = answer {
            let _ = answer.send(Arc::unwrap_or_clone(event).context.into());
        }
    }
    // Waiting callers get an error.
    waiting.lock().clear();
}

/// Calls one tool again and again. `input` makes the input from the call's number. A response with
/// an error counts as a failure.
pub struct ToolCalls {
    pub answers: Arc<Answers>,
    pub tool: String,
    pub input: fn(u64) -> Value,
}

#[async_trait]
impl Target for ToolCalls {
    async fn call(&self, number: u64) -> Result<(), String> {
        let context = self.answers.call(&self.tool, (self.input)(number)).await?;
        match context.get("status").and_then(Value::as_str) {
            Some("success") => Ok(()),
            _ => Err(context.get("error").map_or_else(|| "a response without a status".into(), Value::to_string)),
        }
    }
}
