//! One call from the caller's side: writes the request, then waits for its one response, and
//! reconnects if needed. Meanwhile an observer is notified of its progress, if the agent can follow
//! events.
//!
//! This crate uses any store by its traits. It deliberately does not know how a caller shows the
//! progress or the response. [`send`] writes the request, and [`response`] waits.
//!
//! # Example
//! ```no_run
//! use rcrt_breadcrumb::{Breadcrumbs, StoreError, ToolRequest};
//! use rcrt_pending_call::{NoObserver, response, send_once};
//! use serde_json::{Value, json};
//!
//! async fn calculate(store: &dyn Breadcrumbs) -> Result<Option<Value>, StoreError> {
//!     let record = ToolRequest::record("calculator", json!({"expression": "6 * 7"}), None, None);
//!     let call = send_once(store, record).await?;
//!     let mut response = response(store, &call, &NoObserver).await?;
//!     Ok(response.context.remove("output"))
//! }
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{
    CallQueue, Event, EventKind, EventNumber, Events, NewBreadcrumb, Records, Selector, StoreError, SubscribeOptions,
    SubscriptionItem, ToolLog, ToolResponse, schema_names,
};
use serde_json::{Map, Value};
use tokio::time::{MissedTickBehavior, interval, sleep};
use uuid::Uuid;

/// How often the call itself is queried, in case the event stream misses the response.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A request that was written and waits for its response.
pub struct PendingCall {
    pub request: Uuid,
    tag: String,
    after: Option<EventNumber>,
}

/// The response of a call.
pub struct CallResponse {
    pub record: Uuid,
    pub context: Map<String, Value>,
}

/// The newest event. `None` if the agent cannot follow events, as one with only the role `emitter`.
pub async fn newest_event(store: &(impl Events + ?Sized)) -> Result<Option<EventNumber>, StoreError> {
    match store.latest_event().await {
        Err(StoreError::Forbidden(_)) => Ok(None),
        newest => newest.map(Some),
    }
}

/// Writes the request. `after` is the [`newest_event`] before, so the event of the response cannot
/// be missed.
pub async fn send(
    store: &(impl Records + ?Sized),
    record: NewBreadcrumb,
    key: &str,
    after: Option<EventNumber>,
) -> Result<PendingCall, StoreError> {
    let request_id = record.context.get("requestId").and_then(Value::as_str).map(str::to_owned);
    let request = store.create(record, Some(key)).await?.id;
    let tag = ToolResponse::tag(&request_id.unwrap_or_else(|| request.to_string()));
    Ok(PendingCall { request, tag, after })
}

/// Writes a request that is not sent again if this fails.
pub async fn send_once(
    store: &(impl Records + Events + ?Sized),
    record: NewBreadcrumb,
) -> Result<PendingCall, StoreError> {
    let after = newest_event(store).await?;
    send(store, record, &Uuid::new_v4().to_string(), after).await
}

/// Is notified while a call waits for its response.
pub trait CallObserver: Sync {
    /// The store cannot be reached; the wait continues.
    fn lost(&self, _why: &StoreError) {}

    /// Progress of the call: a fraction from 0 to 1 if the tool reports one, and a line for people.
    fn progress(&self, _fraction: Option<f64>, _message: &str) {}

    /// Console lines of a call with `debug`.
    fn log(&self, _log: &ToolLog) {}
}

/// Ignores all notifications.
pub struct NoObserver;

impl CallObserver for NoObserver {}

/// Waits for the response without a limit; drop the future to stop. Retries while the store cannot
/// be reached.
pub async fn response(
    store: &(impl Events + CallQueue + ?Sized),
    asked: &PendingCall,
    watching: &dyn CallObserver,
) -> Result<CallResponse, StoreError> {
    let Some(mut after) = asked.after else { return poll(store, asked, watching).await };
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = after;
        let error = match follow(store, asked, &mut after, watching).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if !error.is_retryable() {
            return Err(error);
        }
        tracing::debug!(%error, "the event stream broke; reconnecting");
        watching.lost(&error);
        // A stream can be refused, such as at a limit, by a server that has the response.
        if let Ok(Some(answer)) = look(store, asked).await {
            return Ok(answer);
        }
        pause = if after == seen { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
        sleep(pause).await;
    }
}

/// Reads events until the one of the response. Its event has the response itself, so no further
/// request is needed: a server that is stopping accepts none.
async fn follow(
    store: &(impl Events + CallQueue + ?Sized),
    asked: &PendingCall,
    after: &mut EventNumber,
    watching: &dyn CallObserver,
) -> Result<CallResponse, StoreError> {
    let of_call = Selector { all_tags: vec![asked.tag.clone()], ..Selector::default() };
    let options = SubscribeOptions { filters: vec![of_call], ..SubscribeOptions::all(Some(*after)) };
    let mut events = store.subscribe(options).await?;
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        tokio::select! {
            item = events.next() => {
                let item = item.unwrap_or_else(|| Err(StoreError::Unavailable("the event stream ended".into())))?;
                match item {
                    SubscriptionItem::Skipped(number) => *after = number,
                    SubscriptionItem::Missed { first } => {
                        *after = EventNumber(first.0 - 1);
                        ticks.reset_immediately();
                    }
                    SubscriptionItem::Event(event) => {
                        *after = event.number;
                        match read(event, asked, watching) {
                            Seen::Response(response) => return Ok(response),
                            Seen::MaybeResponse => ticks.reset_immediately(),
                            Seen::Other => {}
                        }
                    }
                }
            }
            _ = ticks.tick() => {
                if let Some(answer) = look(store, asked).await? {
                    return Ok(answer);
                }
            }
        }
    }
}

/// Queries the call until it has its response, for an agent that cannot follow events.
async fn poll(
    store: &(impl CallQueue + ?Sized),
    asked: &PendingCall,
    watching: &dyn CallObserver,
) -> Result<CallResponse, StoreError> {
    let mut pause = FIRST_PAUSE;
    loop {
        match look(store, asked).await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(error) if error.is_retryable() => watching.lost(&error),
            Err(error) => return Err(error),
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Queries the call itself.
async fn look(store: &(impl CallQueue + ?Sized), asked: &PendingCall) -> Result<Option<CallResponse>, StoreError> {
    let Some(record) = store.call(asked.request).await?.response else { return Ok(None) };
    Ok(Some(CallResponse { record, context: store.get(record).await?.context }))
}

/// What an event is for the caller.
enum Seen {
    Response(CallResponse),
    /// The event of a secret response has no context.
    MaybeResponse,
    Other,
}

/// Another request can have the same id. The runtime writes the id of the request's record into its
/// records.
fn read(event: Arc<Event>, asked: &PendingCall, watching: &dyn CallObserver) -> Seen {
    let of_call = |request: Option<&Value>| request.is_some_and(|request| *request == asked.request.to_string());
    match event.schema_name.as_deref() {
        _ if event.kind == EventKind::Deleted => {}
        Some(schema_names::TOOL_RESPONSE) if event.kind == EventKind::Created => {
            match event.context.get("metadata").and_then(|metadata| metadata.get("request")) {
                None => return Seen::MaybeResponse,
                request if of_call(request) => {
                    let Event { breadcrumb_id: record, context, .. } = Arc::unwrap_or_clone(event);
                    return Seen::Response(CallResponse { record, context: context.into() });
                }
                Some(_) => {}
            }
        }
        Some(schema_names::TOOL_PROGRESS) if of_call(event.context.get("request")) => {
            let message = event.context.get("message").and_then(Value::as_str).unwrap_or_default();
            watching.progress(event.context.get("fraction").and_then(Value::as_f64), message);
        }
        Some(schema_names::TOOL_LOG) if of_call(event.context.get("request")) => {
            if let Ok(log) = ToolLog::from_context(&event.context) {
                watching.log(&log);
            }
        }
        _ => {}
    }
    Seen::Other
}
