//! Runs tools when a record that matches their subscriptions is created or changed.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{
    Breadcrumbs, Event, Fuel, MAX_RECORD_BYTES, NewBreadcrumb, OutOfFuel, Records, StoreError, ToolRequest, Visibility,
    object_bytes, schema_names,
};
use rcrt_executors::TriggerChain;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::backoff::with_retries;
use crate::on_behalf_of::on_behalf_of;
use crate::registry::Registry;
use crate::registry::tool::Candidate;
use crate::registry::tool_loader::ToolLoader;

/// How long an event waits for tools that were written just before it.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Subscriptions {
    pub store: Arc<dyn Breadcrumbs>,
    pub registry: Arc<Registry>,
    pub loading: Arc<ToolLoader>,
}

impl Subscriptions {
    pub async fn run(self, mut events: mpsc::Receiver<Arc<Event>>, stop: CancellationToken) {
        let work = async {
            // Events wait while the tools are being read, so none is missed.
            self.loading.listed().await;
            while let Some(event) = events.recv().await {
                if !self.loading.is_caught_up() {
                    let _ = timeout(PATIENCE, self.loading.caught_up()).await;
                }
                // Validate matching tools now: they do not get this event again after a later
                // validation.
                let event = Arc::new(event);
                let unvalidated = self.registry.unvalidated_subscribers(|tool| may_want(tool, &event));
                for tool in wanting(unvalidated, &event).await {
                    self.loading.validate_now(tool.id).await;
                }
                let subscribed = self.registry.subscribed(|tool| may_want(tool, &event));
                for tool in wanting(subscribed, &event).await {
                    self.trigger(&tool, &event).await;
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    /// One request for each tool and event, with any number of runners.
    async fn trigger(&self, tool: &Candidate, event: &Event) {
        let key = format!("trigger:{}:{}", tool.id, event.number);
        let request = request(tool, event);
        let store = match on_behalf_of(&self.store, tool.author) {
            Ok(store) => store,
            Err(error) => {
                tracing::error!(tool = tool.name(), %error, "a tool cannot be triggered on behalf of its author");
                return;
            }
        };
        // A tool receives only events that its author can see.
        if event.private && !sees_version(&*store, event).await {
            return;
        }
        match with_retries("trigger a tool", || store.create(request.clone(), Some(&key))).await {
            Ok(created) => {
                tracing::debug!(tool = tool.name(), event = %event.number, request = %created.id, "triggered");
            }
            // Another runner wrote the request for another version of the tool.
            Err(StoreError::IdempotencyMismatch) => {}
            Err(error) => {
                tracing::error!(tool = tool.name(), event = %event.number, %error, "a tool cannot be triggered");
            }
        }
    }
}

/// Whether the agent of this store sees the event's version. Each old version has its own
/// visibility.
async fn sees_version(store: &dyn Records, event: &Event) -> bool {
    let id = event.breadcrumb_id;
    match with_retries("check who sees a record", || store.view(id)).await {
        Ok(present) if present.version == event.version => true,
        Ok(_) => {
            let history = with_retries("check who sees a version", || store.history(id)).await;
            history.is_ok_and(|versions| versions.iter().any(|one| one.version == event.version))
        }
        Err(_) => false,
    }
}

/// The tools whose subscriptions match the event. Long matches run outside of the async runtime.
async fn wanting(mut tools: Vec<Arc<Candidate>>, event: &Arc<Event>) -> Vec<Arc<Candidate>> {
    let mut fuel = Fuel::for_async();
    let mut wanting = Vec::new();
    let known = tools.iter().take_while(|tool| match is_subscribed(tool, event, &mut fuel) {
        Ok(is_wanted) => {
            wanting.extend(is_wanted.then(|| (*tool).clone()));
            true
        }
        Err(OutOfFuel) => false,
    });
    let known = known.count();
    let rest = tools.split_off(known);
    if rest.is_empty() {
        return wanting;
    }
    let matched_event = event.clone();
    let matching = move || {
        let is_wanted = |tool: &Arc<Candidate>| {
            is_subscribed(tool, &matched_event, &mut Fuel::for_blocking()).unwrap_or_else(|OutOfFuel| {
                metrics::counter!("rcrt_matches_refused_total", "where" => "subscription").increment(1);
                false
            })
        };
        rest.into_iter().filter(is_wanted).collect::<Vec<_>>()
    };
    match rcrt_compute::pool().run(event.owner_id, matching).await {
        Ok(more) => wanting.extend(more),
        Err(error) => tracing::error!(event = %event.number, %error, "an event was not matched with subscriptions"),
    }
    wanting
}

/// Whether one of the tool's subscriptions matches the event.
fn is_subscribed(tool: &Candidate, event: &Event, fuel: &mut Fuel) -> Result<bool, OutOfFuel> {
    for one in &tool.subscriptions {
        if one.matches_event(event, fuel)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the event can be for this tool, by checks that are cheap. It never is if the tool itself
/// caused the event, directly or through tools that it triggered: such a cycle would not end.
fn may_want(tool: &Candidate, event: &Event) -> bool {
    let schema = event.schema_name.as_deref();
    let about = event.context.get("tool").and_then(Value::as_str);
    let of_a_call =
        [schema_names::TOOL_REQUEST, schema_names::TOOL_RESPONSE, schema_names::TOOL_PROGRESS, schema_names::TOOL_LOG]
            .map(Some)
            .contains(&schema);
    let is_own_call = of_a_call && about == Some(tool.name());
    !is_own_call
        // Records that another tenant shares trigger nothing here.
        && event.owner_id == tool.owner_id
        // These records do not name the call that led to them, so a tool that writes tools in
        // response would never stop.
        && ![schema_names::TOOL_CATALOG, schema_names::TOOL_RUNNER, schema_names::TOOL_SHADOW]
            .map(Some)
            .contains(&schema)
        // The event may be older than the tool.
        && event.updated_at >= tool.created_at
        && event.breadcrumb_id != tool.id
        && !TriggerChain::of(&event.tags, event.version).contains(tool.name())
}

/// The same on every runner, so that the idempotency key matches.
fn request(tool: &Candidate, event: &Event) -> NewBreadcrumb {
    let workspace = event.tags.iter().find(|tag| tag.starts_with("workspace:")).or(tool.workspace.as_ref());
    let mut record = ToolRequest::record(tool.name(), json!({}), None, workspace.map(String::as_str));
    let mut trigger = match serde_json::to_value(event) {
        Ok(Value::Object(trigger)) => trigger,
        _ => Map::new(),
    };
    // The request must fit into one record together with the triggering record. If it does not, the
    // tool can read that record itself.
    if object_bytes(&event.context) > MAX_RECORD_BYTES / 2 {
        trigger.insert("context".into(), json!({}));
        trigger.insert("context_omitted".into(), true.into());
    }
    record.context.insert("trigger_event".into(), Value::Object(trigger));
    // The record is not visible to the whole tenant.
    if event.private {
        record.visibility = Visibility::Private;
    }
    let chain = TriggerChain::of(&event.tags, event.version);
    // The calls that one event leads to are limited in total.
    if let Some(call) = chain.call() {
        record.context.insert("parent".into(), call.to_string().into());
    }
    chain.with(tool.name()).mark(&mut record.tags, 1);
    // The profiles of a request and its response also restrict the tools that they trigger.
    let mut profiles = tool.profiles.clone();
    profiles.add_tags(&event.tags);
    record.tags.extend(profiles.tags());
    record
}
