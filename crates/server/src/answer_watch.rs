//! Hearing of answers while callers wait for them, without asking the store again and again: one event stream for each
//! tenant that has waiting callers, however many they are.
//!
//! A caller listens before it writes its request, and looks once after it: an answer that comes between is seen by the
//! look, and one that comes later is heard.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use breadcrumb::{Breadcrumb, Breadcrumbs, Event, EventKind, EventStream, StoreError, schema_names};
use futures::StreamExt;
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    time::{MissedTickBehavior, interval},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

/// How long a stream stays open, at the least, when nobody waits any more.
const LINGER: Duration = Duration::from_secs(15);

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
    bells: HashMap<String, Vec<Arc<Notify>>>,
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
        locked(&tenant.waiting).listeners += 1;
        Listening { tenant: tenant.clone() }
    }

    /// The answer to a request that was written under `listening`. Waits for ever; to be dropped when the time is up.
    pub async fn answer(
        &self,
        mut listening: Listening,
        owner_id: Uuid,
        store: &Arc<dyn Breadcrumbs>,
        request: Uuid,
        request_id: &str,
    ) -> Result<Breadcrumb, StoreError> {
        loop {
            let mut bell = listening.bell(request_id);
            loop {
                if let Some(response) = store.call(request).await?.response {
                    return store.get(response).await;
                }
                if !bell.rings().await {
                    break;
                }
            }
            drop(bell);
            // The stream broke: what was answered meanwhile is seen by the next look.
            listening = self.listen(owner_id, store).await?;
        }
    }
}

/// A caller's place among those who listen, until it is dropped.
pub struct Listening {
    tenant: Arc<Tenant>,
}

impl Listening {
    fn bell(&self, request_id: &str) -> Bell {
        let notify = Arc::new(Notify::new());
        locked(&self.tenant.waiting).bells.entry(request_id.to_owned()).or_default().push(notify.clone());
        Bell {
            tenant: self.tenant.clone(),
            request_id: request_id.to_owned(),
            notify,
            standing: self.tenant.standing.subscribe(),
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        locked(&self.tenant.waiting).listeners -= 1;
    }
}

/// Rings when a request of this id was answered.
struct Bell {
    tenant: Arc<Tenant>,
    request_id: String,
    notify: Arc<Notify>,
    standing: watch::Receiver<Standing>,
}

impl Bell {
    /// `false` when it will not ring any more.
    async fn rings(&mut self) -> bool {
        tokio::select! {
            () = self.notify.notified() => true,
            _ = self.standing.wait_for(|standing| matches!(standing, Standing::Ended(_))) => false,
        }
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let mut waiting = locked(&self.tenant.waiting);
        if let Some(bells) = waiting.bells.get_mut(&self.request_id) {
            bells.retain(|bell| !Arc::ptr_eq(bell, &self.notify));
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
                    Some(Ok(event)) => self.ring(&event),
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

    fn ring(&self, event: &Event) {
        if event.kind != EventKind::Created || event.schema_name.as_deref() != Some(schema_names::TOOL_RESPONSE) {
            return;
        }
        let Some(request_id) = event.context.get("request_id").and_then(Value::as_str) else { return };
        if let Some(bells) = locked(&self.tenant.waiting).bells.get(request_id) {
            for bell in bells {
                bell.notify_one();
            }
        }
    }
}

fn closing() -> StoreError {
    StoreError::Unavailable("the server is closing".into())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds a lock here, and every state in between is a good one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
