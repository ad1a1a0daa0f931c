//! Wakes HTTP callers that wait for responses, without polling the store: one event stream for each
//! tenant that has waiting callers, with any number of callers.
//!
//! A caller registers before it writes its request. Every later response arrives as an event, which
//! includes the response itself, so no query is needed, and the latest are remembered: a response
//! that is written with its request comes before its caller knows the request's id. The caller
//! queries the store only if an event may have been missed: the request was written earlier, its
//! large response came too early, or the stream broke.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    CallQueue, Created, Event, EventContext, EventKind, EventStream, Events, StoreError, object_bytes, schema_names,
};
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    time::{MissedTickBehavior, interval},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

/// How long a stream stays open after its last caller, at least.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// How many responses are remembered that came before a waiter was registered for them. A response
/// that is written with its request always does.
const MAX_EARLY_RESPONSES: usize = 1024;
/// The most bytes of a context that is remembered with its response; a larger one is read from the
/// store.
const MAX_EARLY_BYTES: usize = 4 * 1024;

/// The tenants with waiting callers.
pub struct ResponseWaiters {
    tenants: Arc<Mutex<HashMap<Uuid, Arc<Tenant>>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// One tenant's stream and its waiters.
struct Tenant {
    stream_state: watch::Sender<StreamState>,
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    /// Callers that listen, including those that have not yet written their request.
    listeners: usize,
    /// By the caller's own id of the request. Two requests can have the same.
    waiters: HashMap<String, Vec<Arc<Waiter>>>,
    /// The latest responses, newest last.
    answered: VecDeque<EarlyResponse>,
    /// The number of responses that were received.
    received: u64,
}

struct EarlyResponse {
    /// The caller's own id of the request.
    request_id: String,
    /// The request's record, if the response names it.
    request: Option<Uuid>,
    /// Unless it is large.
    context: Option<EventContext>,
}

/// What is known of a response when its waiter is registered.
enum Early {
    /// It has not come.
    Nothing,
    /// It may have come.
    Unknown,
    Response(EventContext),
}

#[derive(Clone)]
enum StreamState {
    Opening,
    Open,
    Ended(StoreError),
}

impl ResponseWaiters {
    /// Stops at `stop`; [`ResponseWaiters::ended`] waits for that.
    pub fn new(stop: CancellationToken) -> Self {
        Self { tenants: Arc::default(), tasks: TaskTracker::new(), stop }
    }

    pub async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Every response in the tenant that is written after this returns will be received.
    pub async fn listen(&self, owner_id: Uuid, store: &Arc<impl Events + ?Sized>) -> Result<Listener, StoreError> {
        let listener = self.join(owner_id, store);
        let mut stream_state = listener.tenant.stream_state.subscribe();
        // The sender lives as long as the tenant, which `listener` holds.
        let stream_state = stream_state.wait_for(|stream_state| !matches!(stream_state, StreamState::Opening)).await;
        match stream_state.as_deref() {
            Ok(StreamState::Ended(error)) => return Err(error.clone()),
            Ok(StreamState::Opening | StreamState::Open) => {}
            Err(_) => return Err(closing()),
        }
        drop(stream_state);
        Ok(listener)
    }

    fn join(&self, owner_id: Uuid, store: &Arc<impl Events + ?Sized>) -> Listener {
        let mut tenants = self.tenants.lock();
        let tenant = tenants.entry(owner_id).or_insert_with(|| {
            let tenant =
                Arc::new(Tenant { stream_state: watch::channel(StreamState::Opening).0, registry: Mutex::default() });
            let follower =
                Follower { owner_id, tenant: tenant.clone(), tenants: self.tenants.clone(), stop: self.stop.clone() };
            self.tasks.spawn(follower.run(store.clone()));
            tenant
        });
        let mut registry = tenant.registry.lock();
        registry.listeners += 1;
        Listener { tenant: tenant.clone(), since: registry.received }
    }

    /// The response (its context) to a request that was written under `listener`. Waits without a
    /// limit; drop the future to stop waiting.
    pub async fn answer(
        &self,
        mut listener: Listener,
        owner_id: Uuid,
        store: &Arc<impl Events + CallQueue + ?Sized>,
        created: &Created,
        request_id: &str,
    ) -> Result<EventContext, StoreError> {
        let mut must_look = created.replayed;
        loop {
            let (mut guard, early) = listener.register(created.id, request_id);
            match early {
                Early::Response(context) => return Ok(context),
                Early::Unknown => must_look = true,
                Early::Nothing => {}
            }
            loop {
                if must_look && let Some(response) = store.call(created.id).await?.response {
                    return Ok(store.get(response).await?.context.into());
                }
                match guard.next_wakeup().await {
                    Some(Wakeup::Answer(context)) => return Ok(context),
                    Some(Wakeup::CheckStore) => must_look = true,
                    None => break,
                }
            }
            drop(guard);
            // The stream broke, so the response may be in the store already.
            must_look = true;
            listener = self.listen(owner_id, store).await?;
        }
    }
}

/// The registration of a listening caller, until it is dropped.
pub struct Listener {
    tenant: Arc<Tenant>,
    /// The number of responses received when it began.
    since: u64,
}

impl Listener {
    /// Registers a waiter for the response to this request. Also returns what came before.
    fn register(&self, request: Uuid, request_id: &str) -> (WaiterGuard, Early) {
        let waiter = Arc::new(Waiter { request, wakeup: Mutex::default(), notify: Notify::new() });
        let mut registry = self.tenant.registry.lock();
        registry.waiters.entry(request_id.to_owned()).or_default().push(waiter.clone());
        let early = registry.early(self.since, request, request_id);
        drop(registry);
        let (tenant, stream_state) = (self.tenant.clone(), self.tenant.stream_state.subscribe());
        (WaiterGuard { tenant, request_id: request_id.to_owned(), waiter, stream_state }, early)
    }
}

impl Registry {
    /// Among the responses since the first `since`, that to this request.
    fn early(&self, since: u64, request: Uuid, request_id: &str) -> Early {
        let missed = usize::try_from(self.received - since).unwrap_or(usize::MAX);
        let is_it = |answered: &&EarlyResponse| match answered.request {
            Some(of) => of == request,
            None => answered.request_id == request_id,
        };
        match self.answered.iter().rev().take(missed).find(is_it) {
            Some(EarlyResponse { request: Some(_), context: Some(context), .. }) => Early::Response(context.clone()),
            Some(_) => Early::Unknown,
            None if missed > self.answered.len() => Early::Unknown,
            None => Early::Nothing,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.tenant.registry.lock().listeners -= 1;
    }
}

/// Wakes when the response to a request with this id arrives.
struct Waiter {
    request: Uuid,
    wakeup: Mutex<Option<Wakeup>>,
    notify: Notify,
}

/// Why a waiter wakes.
enum Wakeup {
    /// The response's context.
    Answer(EventContext),
    /// A response arrived that does not name its request.
    CheckStore,
}

impl Waiter {
    fn wake(&self, wakeup: Wakeup) {
        *self.wakeup.lock() = Some(wakeup);
        self.notify.notify_one();
    }
}

/// A registered waiter, until it is dropped.
struct WaiterGuard {
    tenant: Arc<Tenant>,
    request_id: String,
    waiter: Arc<Waiter>,
    stream_state: watch::Receiver<StreamState>,
}

impl WaiterGuard {
    /// `None` if the stream closed and will not wake it.
    async fn next_wakeup(&mut self) -> Option<Wakeup> {
        loop {
            if let Some(wakeup) = self.waiter.wakeup.lock().take() {
                return Some(wakeup);
            }
            tokio::select! {
                () = self.waiter.notify.notified() => {}
                _ = self.stream_state.wait_for(|stream_state| matches!(stream_state, StreamState::Ended(_))) => {
                    return self.waiter.wakeup.lock().take();
                }
            }
        }
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        let mut registry = self.tenant.registry.lock();
        if let Some(waiters) = registry.waiters.get_mut(&self.request_id) {
            waiters.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            if waiters.is_empty() {
                registry.waiters.remove(&self.request_id);
            }
        }
    }
}

/// Reads one tenant's events.
struct Follower {
    owner_id: Uuid,
    tenant: Arc<Tenant>,
    tenants: Arc<Mutex<HashMap<Uuid, Arc<Tenant>>>>,
    stop: CancellationToken,
}

impl Follower {
    async fn run(self, store: Arc<impl Events + ?Sized>) {
        let ended = match self.open(&*store).await {
            Ok(events) => {
                self.tenant.stream_state.send_replace(StreamState::Open);
                self.follow(events).await
            }
            Err(error) => error,
        };
        // Removed from the table first, so that a caller that learns that the stream closed opens a
        // new one.
        self.leave(&mut self.tenants.lock());
        self.tenant.stream_state.send_replace(StreamState::Ended(ended));
    }

    async fn open(&self, store: &(impl Events + ?Sized)) -> Result<EventStream, StoreError> {
        tokio::select! {
            () = self.stop.cancelled() => Err(closing()),
            events = store.events(None) => events,
        }
    }

    async fn follow(&self, mut events: EventStream) -> StoreError {
        let mut looks = interval(IDLE_TIMEOUT);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return closing(),
                event = events.next() => match event {
                    Some(Ok(event)) => self.dispatch(&event),
                    Some(Err(error)) => return error,
                    None => return StoreError::Unavailable("the event stream closed".into()),
                },
                _ = looks.tick() => {
                    // No caller can join while the table is locked.
                    let mut tenants = self.tenants.lock();
                    if self.tenant.registry.lock().listeners == 0 {
                        self.leave(&mut tenants);
                        return StoreError::Unavailable("no caller is listening".into());
                    }
                }
            }
        }
    }

    /// The table can already have a newer stream for this tenant.
    fn leave(&self, tenants: &mut HashMap<Uuid, Arc<Tenant>>) {
        if tenants.get(&self.owner_id).is_some_and(|tenant| Arc::ptr_eq(tenant, &self.tenant)) {
            tenants.remove(&self.owner_id);
        }
    }

    fn dispatch(&self, event: &Event) {
        if event.kind != EventKind::Created || event.schema_name.as_deref() != Some(schema_names::TOOL_RESPONSE) {
            return;
        }
        let context = &event.context;
        let Some(request_id) = context.get("request_id").and_then(Value::as_str).map(str::to_owned) else { return };
        // Only the runtime writes responses, and it sets `metadata.request` itself, not the tool.
        let request: Option<Uuid> =
            context.get("metadata").and_then(|metadata| metadata.get("request")?.as_str()?.parse().ok());
        let early = (object_bytes(context) <= MAX_EARLY_BYTES).then(|| context.clone());
        let mut registry = self.tenant.registry.lock();
        let waiters = registry.waiters.get(&request_id).cloned().unwrap_or_default();
        registry.received += 1;
        registry.answered.push_back(EarlyResponse { request_id, request, context: early });
        if registry.answered.len() > MAX_EARLY_RESPONSES {
            registry.answered.pop_front();
        }
        drop(registry);
        let Some(request) = request else {
            for waiter in waiters {
                waiter.wake(Wakeup::CheckStore);
            }
            return;
        };
        // Another request can have the same id.
        for waiter in waiters.into_iter().filter(|waiter| waiter.request == request) {
            waiter.wake(Wakeup::Answer(context.clone()));
        }
    }
}

fn closing() -> StoreError {
    StoreError::Unavailable("the server is shutting down".into())
}
