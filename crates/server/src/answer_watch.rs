//! Hearing of answers while callers wait for them, without asking the store again and again: one event stream for each
//! tenant that has waiting callers, however many they are.
//!
//! A caller listens before it writes its request. What is answered from then on is heard, and the event is the answer:
//! nobody asks the store for it. Only where something may have been missed (the request was written earlier, its answer
//! came before its caller had a bell, the stream broke) the caller looks.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use breadcrumb::{Breadcrumbs, Created, Event, EventKind, EventStream, StoreError, schema_names};
use futures::StreamExt;
use serde_json::{Map, Value};
use tokio::{
    sync::{Notify, watch},
    time::{MissedTickBehavior, interval},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

/// How long a stream stays open, at the least, when nobody waits any more.
const LINGER: Duration = Duration::from_secs(15);
/// How many answers are remembered that came before anybody had a bell for them.
const REMEMBERED: usize = 1024;

/// The tenants with waiting callers.
pub struct AnswerWatch {
    tenants: Arc<Mutex<HashMap<Uuid, Arc<Tenant>>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// One tenant's stream and who waits for it.
struct Tenant {
    standing: watch::Sender<Standing>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Callers that listen, whether they have written their request or not.
    listeners: usize,
    /// By the request's own id. Two requests may have the same.
    bells: HashMap<String, Vec<Arc<Bell>>>,
    /// The own ids of the requests answered last, newest last.
    answered: VecDeque<String>,
    /// How many answers were heard in all.
    heard: u64,
}

#[derive(Clone)]
enum Standing {
    Opening,
    Open,
    Ended(StoreError),
}

impl AnswerWatch {
    /// Ends with `stop`; [`AnswerWatch::ended`] waits for that.
    pub fn new(stop: CancellationToken) -> Self {
        Self { tenants: Arc::default(), tasks: TaskTracker::new(), stop }
    }

    pub async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Every answer in the tenant that is written after this returns will be heard.
    pub async fn listen(&self, owner_id: Uuid, store: &Arc<dyn Breadcrumbs>) -> Result<Listening, StoreError> {
        let listening = self.join(owner_id, store);
        let mut standing = listening.tenant.standing.subscribe();
        // The sender lives as long as the tenant, which `listening` holds.
        let standing = standing.wait_for(|standing| !matches!(standing, Standing::Opening)).await;
        match standing.as_deref() {
            Ok(Standing::Ended(error)) => return Err(error.clone()),
            Ok(Standing::Opening | Standing::Open) => {}
            Err(_) => return Err(closing()),
        }
        drop(standing);
        Ok(listening)
    }

    fn join(&self, owner_id: Uuid, store: &Arc<dyn Breadcrumbs>) -> Listening {
        let mut tenants = locked(&self.tenants);
        let tenant = tenants.entry(owner_id).or_insert_with(|| {
            let tenant = Arc::new(Tenant { standing: watch::channel(Standing::Opening).0, waiting: Mutex::default() });
            let follower =
                Follower { owner_id, tenant: tenant.clone(), tenants: self.tenants.clone(), stop: self.stop.clone() };
            self.tasks.spawn(follower.run(store.clone()));
            tenant
        });
        let mut waiting = locked(&tenant.waiting);
        waiting.listeners += 1;
        Listening { tenant: tenant.clone(), since: waiting.heard }
    }

    /// The answer (the response's context) to a request that was written under `listening`. Waits for ever; to be
    /// dropped when the time is up.
    pub async fn answer(
        &self,
        mut listening: Listening,
        owner_id: Uuid,
        store: &Arc<dyn Breadcrumbs>,
        created: &Created,
        request_id: &str,
    ) -> Result<Map<String, Value>, StoreError> {
        let mut must_look = created.replayed;
        loop {
            let (mut hung, may_have_rung) = listening.hang(created.id, request_id);
            must_look |= may_have_rung;
            loop {
                if must_look && let Some(response) = store.call(created.id).await?.response {
                    return Ok(store.get(response).await?.context);
                }
                match hung.rings().await {
                    Some(Ring::Answer(context)) => return Ok(context),
                    Some(Ring::Look) => must_look = true,
                    None => break,
                }
            }
            drop(hung);
            // The stream broke: what was answered meanwhile is seen by a look.
            must_look = true;
            listening = self.listen(owner_id, store).await?;
        }
    }
}

/// A caller's place among those who listen, until it is dropped.
pub struct Listening {
    tenant: Arc<Tenant>,
    /// How many answers had been heard when it began.
    since: u64,
}

impl Listening {
    /// Hangs up a bell for the answer to this request, and tells whether the answer may have come before.
    fn hang(&self, request: Uuid, request_id: &str) -> (Hung, bool) {
        let bell = Arc::new(Bell { request, ring: Mutex::default(), notify: Notify::new() });
        let mut waiting = locked(&self.tenant.waiting);
        waiting.bells.entry(request_id.to_owned()).or_default().push(bell.clone());
        let missed = usize::try_from(waiting.heard - self.since).unwrap_or(usize::MAX);
        let may_have_rung = missed > waiting.answered.len()
            || waiting.answered.iter().rev().take(missed).any(|answered| answered == request_id);
        drop(waiting);
        let (tenant, standing) = (self.tenant.clone(), self.tenant.standing.subscribe());
        (Hung { tenant, request_id: request_id.to_owned(), bell, standing }, may_have_rung)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        locked(&self.tenant.waiting).listeners -= 1;
    }
}

/// Rings when a request of this id was answered.
struct Bell {
    request: Uuid,
    ring: Mutex<Option<Ring>>,
    notify: Notify,
}

/// What a bell tells.
enum Ring {
    /// The response's context.
    Answer(Map<String, Value>),
    /// An answer came that does not say whose it is.
    Look,
}

impl Bell {
    fn ring(&self, ring: Ring) {
        *locked(&self.ring) = Some(ring);
        self.notify.notify_one();
    }
}

/// A bell in its place, until it is dropped.
struct Hung {
    tenant: Arc<Tenant>,
    request_id: String,
    bell: Arc<Bell>,
    standing: watch::Receiver<Standing>,
}

impl Hung {
    /// `None` when it will not ring any more.
    async fn rings(&mut self) -> Option<Ring> {
        loop {
            if let Some(ring) = locked(&self.bell.ring).take() {
                return Some(ring);
            }
            tokio::select! {
                () = self.bell.notify.notified() => {}
                _ = self.standing.wait_for(|standing| matches!(standing, Standing::Ended(_))) => {
                    return locked(&self.bell.ring).take();
                }
            }
        }
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        let mut waiting = locked(&self.tenant.waiting);
        if let Some(bells) = waiting.bells.get_mut(&self.request_id) {
            bells.retain(|bell| !Arc::ptr_eq(bell, &self.bell));
            if bells.is_empty() {
                waiting.bells.remove(&self.request_id);
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
    async fn run(self, store: Arc<dyn Breadcrumbs>) {
        let ended = match self.open(&store).await {
            Ok(events) => {
                self.tenant.standing.send_replace(Standing::Open);
                self.follow(events).await
            }
            Err(error) => error,
        };
        // First out of the table, so that whoever hears of the end joins a new one.
        self.leave(&mut locked(&self.tenants));
        self.tenant.standing.send_replace(Standing::Ended(ended));
    }

    async fn open(&self, store: &Arc<dyn Breadcrumbs>) -> Result<EventStream, StoreError> {
        tokio::select! {
            () = self.stop.cancelled() => Err(closing()),
            events = store.events(None) => events,
        }
    }

    async fn follow(&self, mut events: EventStream) -> StoreError {
        let mut looks = interval(LINGER);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.reset();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return closing(),
                event = events.next() => match event {
                    Some(Ok(event)) => self.ring(event),
                    Some(Err(error)) => return error,
                    None => return StoreError::Unavailable("the events ended".into()),
                },
                _ = looks.tick() => {
                    // Under the table's lock nobody can join.
                    let mut tenants = locked(&self.tenants);
                    if locked(&self.tenant.waiting).listeners == 0 {
                        self.leave(&mut tenants);
                        return StoreError::Unavailable("nobody listened any more".into());
                    }
                }
            }
        }
    }

    /// Another may have this one's place already.
    fn leave(&self, tenants: &mut HashMap<Uuid, Arc<Tenant>>) {
        if tenants.get(&self.owner_id).is_some_and(|tenant| Arc::ptr_eq(tenant, &self.tenant)) {
            tenants.remove(&self.owner_id);
        }
    }

    fn ring(&self, event: Event) {
        if event.kind != EventKind::Created || event.schema_name.as_deref() != Some(schema_names::TOOL_RESPONSE) {
            return;
        }
        let context = event.context;
        let Some(request_id) = context.get("request_id").and_then(Value::as_str).map(str::to_owned) else { return };
        let mut waiting = locked(&self.tenant.waiting);
        let bells = waiting.bells.get(&request_id).cloned().unwrap_or_default();
        waiting.heard += 1;
        waiting.answered.push_back(request_id);
        if waiting.answered.len() > REMEMBERED {
            waiting.answered.pop_front();
        }
        drop(waiting);
        // The runtime alone writes responses, and what its metadata say of the request is none of the tool's words.
        let request: Option<Uuid> =
            context.get("metadata").and_then(|metadata| metadata.get("request")?.as_str()?.parse().ok());
        let Some(request) = request else {
            for bell in bells {
                bell.ring(Ring::Look);
            }
            return;
        };
        // Another request may have the same id.
        let mut bells = bells.into_iter().filter(|bell| bell.request == request);
        let Some(first) = bells.next() else { return };
        for bell in bells {
            bell.ring(Ring::Answer(context.clone()));
        }
        first.ring(Ring::Answer(context));
    }
}

fn closing() -> StoreError {
    StoreError::Unavailable("the server is closing".into())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds a lock here, and every state in between is a good one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
