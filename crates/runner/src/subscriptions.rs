//! Makes tools run when a record appears or changes that they subscribed to.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{
    Breadcrumbs, Event, MAX_RECORD_BYTES, NewBreadcrumb, StoreError, ToolRequest, Visibility, schema_names,
};
use executors::Chain;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::backoff::persist;
use crate::loading::Loading;
use crate::registry::Registry;
use crate::tool::Candidate;
use crate::voice::in_name_of;

/// How long an event waits for tools that were written just before it.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Subscriptions {
    pub store: Arc<dyn Breadcrumbs>,
    pub registry: Arc<Registry>,
    pub loading: Arc<Loading>,
}

impl Subscriptions {
    pub async fn run(self, mut events: mpsc::Receiver<Event>, stop: CancellationToken) {
        let work = async {
            // What was written while the tools are being read is not missed: events wait.
            self.loading.listed().await;
            while let Some(event) = events.recv().await {
                if !self.loading.is_settled() {
                    let _ = timeout(PATIENCE, self.loading.settle()).await;
                }
                // What was read and not judged yet: once it is, nobody tells it of this event again.
                for tool in self.registry.unjudged_subscribers(|tool| wants(tool, &event)) {
                    self.loading.judge_now(tool).await;
                }
                for tool in self.registry.subscribed(|tool| wants(tool, &event)) {
                    self.trigger(&tool, &event).await;
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    /// One request for each tool and event, however many runners hear of it.
    async fn trigger(&self, tool: &Candidate, event: &Event) {
        let key = format!("trigger:{}:{}", tool.id, event.number);
        let request = request(tool, event);
        let store = match in_name_of(&self.store, tool.author) {
            Ok(store) => store,
            Err(error) => {
                tracing::error!(tool = tool.name(), %error, "a tool cannot be triggered in its author's name");
                return;
            }
        };
        // A tool hears no more than who wrote it may.
        if event.private && persist("look who sees a record", || store.view(event.breadcrumb_id)).await.is_err() {
            return;
        }
        match persist("trigger a tool", || store.create(request.clone(), Some(&key))).await {
            Ok(created) => {
                tracing::debug!(tool = tool.name(), event = %event.number, request = %created.id, "triggered");
            }
            // Another runner made it of another version of the tool.
            Err(StoreError::IdempotencyMismatch) => {}
            Err(error) => {
                tracing::error!(tool = tool.name(), event = %event.number, %error, "a tool cannot be triggered");
            }
        }
    }
}

/// Whether the event is for this tool. Never what the tool itself asked for, answered or wrote, alone or over others
/// that it triggered: such a circle would not end.
fn wants(tool: &Candidate, event: &Event) -> bool {
    let schema = event.schema_name.as_deref();
    let about = event.context.get("tool").and_then(Value::as_str);
    let of_a_call = [schema_names::TOOL_REQUEST, schema_names::TOOL_RESPONSE, schema_names::TOOL_PROGRESS]
        .map(Some)
        .contains(&schema);
    let is_own_call = of_a_call && about == Some(tool.name());
    !is_own_call
        // What another tenant shares sets off nothing here.
        && event.owner_id == tool.owner_id
        // It does not tell which call led to it, so whoever writes tools because of it would never end.
        && ![schema_names::TOOL_CATALOG, schema_names::TOOL_RUNNER].map(Some).contains(&schema)
        // The event may be older than the tool.
        && event.updated_at >= tool.created_at
        && event.breadcrumb_id != tool.id
        && tool.definition.subscriptions.iter().any(|one| one.matches(&event.tags, schema, &event.context))
        && !Chain::of(&event.tags, event.version).contains(tool.name())
}

/// The same on every runner, so that the store knows it for the same.
fn request(tool: &Candidate, event: &Event) -> NewBreadcrumb {
    let workspace = event.tags.iter().find(|tag| tag.starts_with("workspace:")).or(tool.workspace.as_ref());
    let mut record = ToolRequest::record(tool.name(), json!({}), None, workspace.map(String::as_str));
    let mut trigger = match serde_json::to_value(event) {
        Ok(Value::Object(trigger)) => trigger,
        _ => Map::new(),
    };
    // A request must fit into a record beside the record that it tells of; the tool can read that one itself.
    if serde_json::to_string(&event.context).map_or(0, |text| text.len()) > MAX_RECORD_BYTES / 2 {
        trigger.insert("context".into(), json!({}));
        trigger.insert("context_omitted".into(), true.into());
    }
    record.context.insert("trigger_event".into(), Value::Object(trigger));
    // It tells of a record that not all of the tenant may see.
    if event.private {
        record.visibility = Visibility::Private;
    }
    Chain::of(&event.tags, event.version).with(tool.name()).mark(&mut record.tags, 1);
    // What a call of a closed profile asked for, or was answered, opens nothing to whom it triggers.
    let mut profiles = tool.profiles.clone();
    profiles.add_tags(&event.tags);
    record.tags.extend(profiles.tags());
    record
}
