//! Follows the store's events and passes each to the parts of the runner that need it.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{Event, EventKind, EventNumber, Events, StoreError, schema_names};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::coordination::leases::Leases;
use crate::coordination::peer_runners::PeerRunners;
use crate::coordination::queue_hints::QueueHints;
use crate::coordination::reporter::Reporter;
use crate::coordination::response_hints::ResponseHints;
use crate::publishing::catalog_publisher::CatalogPublisher;
use crate::registry::Registry;
use crate::registry::bootstrap::BootstrapHints;
use crate::registry::tool_loader::ToolLoader;

/// A stream that lasted this long resets the backoff.
const STABLE_AFTER: Duration = Duration::from_secs(10);

pub(crate) struct EventFollower {
    pub store: Arc<dyn Events>,
    pub registry: Arc<Registry>,
    pub loading: Arc<ToolLoader>,
    pub leases: Arc<Leases>,
    pub hints: Arc<QueueHints>,
    pub bootstrap: Arc<BootstrapHints>,
    pub publisher: Arc<CatalogPublisher>,
    pub peers: Arc<PeerRunners>,
    pub reporter: Arc<Reporter>,
    pub responses: Arc<ResponseHints>,
    /// Events that may match a tool's subscription.
    pub triggers: mpsc::Sender<Arc<Event>>,
}

impl EventFollower {
    /// Follows every event after this number until stopped. Resumes where it was when the stream
    /// breaks.
    pub async fn run(self, after: EventNumber, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow(after) => {}
        }
    }

    async fn follow(&self, mut last: EventNumber) {
        let mut backoff = Backoff::default();
        loop {
            let began = Instant::now();
            match self.store.events(Some(last)).await {
                Ok(mut events) => {
                    while let Some(event) = events.next().await {
                        match event {
                            Ok(event) => {
                                last = event.number;
                                self.dispatch(event).await;
                            }
                            Err(error) => {
                                tracing::warn!(%error, "the event stream broke; following it again");
                                if let StoreError::EventsMissed { first } = error {
                                    last = EventNumber(first.0 - 1);
                                }
                                break;
                            }
                        }
                    }
                }
                Err(error) if error.is_retryable() => tracing::warn!(%error, "events cannot be followed; retrying"),
                Err(error) => {
                    // The events after this number are no longer stored: start with the newest one.
                    tracing::warn!(%error, after = %last, "events cannot be followed from here; reading all tools again");
                    if let Ok(latest) = self.store.latest_event().await {
                        last = latest;
                    }
                }
            }
            if began.elapsed() > STABLE_AFTER {
                backoff.reset();
            }
            backoff.wait().await;
            // The lists show what was missed.
            if let Err(error) = self.loading.reconcile().await {
                tracing::warn!(%error, "the list of tools cannot be compared with the store's");
            }
            self.peers.list_again().await;
            self.hints.now();
        }
    }

    async fn dispatch(&self, event: Arc<Event>) {
        let schema = event.schema_name.as_deref();
        let changes_tool = schema_names::is_tool(schema) || self.registry.version_of(event.breadcrumb_id).is_some();
        if changes_tool {
            self.loading.check_soon(event.breadcrumb_id);
        }
        self.reporter.seen(event.number, changes_tool);
        match (schema, event.kind) {
            (Some(schema_names::TOOL_REQUEST | schema_names::TOOL_CREATE_REQUEST), EventKind::Created) => {
                self.hints.written(event.breadcrumb_id);
            }
            (Some(schema_names::TOOL_REQUEST | schema_names::TOOL_CREATE_REQUEST), EventKind::Deleted) => {
                self.leases.check_soon(event.breadcrumb_id);
            }
            (Some(schema_names::TOOL_REQUEST | schema_names::TOOL_CREATE_REQUEST), EventKind::Updated)
                if event.context.get("cancel_requested") == Some(&Value::Bool(true)) =>
            {
                self.leases.check_soon(event.breadcrumb_id);
            }
            (Some(schema_names::TOOL_RUNNER), EventKind::Deleted) => self.peers.deregistered(event.breadcrumb_id),
            (Some(schema_names::TOOL_RUNNER), _) => self.peers.registered(event.breadcrumb_id, &event.context),
            (Some(schema_names::TOOL_CATALOG), _) => self.publisher.part_changed(&event),
            (Some(schema_names::TOOL_RESPONSE), EventKind::Created) => {
                self.responses.arrived(&event.context);
                let tool = event.context.get("tool").and_then(Value::as_str).unwrap_or_default();
                if self.registry.offered(tool).is_some_and(|tool| tool.bootstrap().is_some()) {
                    self.bootstrap.check_soon();
                }
            }
            _ => {}
        }
        let may_trigger = event.kind != EventKind::Deleted
            && (!self.loading.is_listed() || !self.loading.is_caught_up() || self.registry.may_have_subscribed());
        if may_trigger {
            // If the queue is full, the stream waits; no event is dropped.
            let _ = self.triggers.send(event).await;
        }
    }
}
