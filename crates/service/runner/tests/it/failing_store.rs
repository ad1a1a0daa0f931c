//! A store that fails on request of a test, and otherwise passes everything to the real one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, Breadcrumbs, Call,
    CallQueue, Claim, ClaimRequest, Created, EgressLog, EventNumber, Events, Found, HeldLease, Lease, NewBreadcrumb,
    NewSecret, Records, Release, Rights, Search, SecretChanges, SecretInfo, Secrets, Selector, SelectorSubscription,
    Selectors, StoreError, SubscribeOptions, SubscriptionStream, schema_names,
};
use tokio::sync::{Notify, Semaphore, watch};
use uuid::Uuid;

pub struct FailingStore {
    pub store: Arc<dyn Breadcrumbs>,
    pub heartbeats_fail: AtomicBool,
    /// How many of the next responses are lost before they are written.
    pub completes_fail: AtomicU32,
    /// How many starts were requested.
    pub starts: watch::Sender<u32>,
    /// The event stream ends with an error after each event.
    pub events_break: AtomicBool,
    /// While it has no permit, events are held back.
    pub events: Arc<Semaphore>,
    /// While it has no permit, reads of histories are held back.
    pub histories: Semaphore,
    /// While they have no permit, reads of records and lists of tool errors are held back.
    pub gets: Semaphore,
    pub reports: Semaphore,
    pub reports_asked: Notify,
    /// How many lists of tool errors were returned.
    pub reports_given: watch::Sender<usize>,
    /// Notified when a history is requested.
    pub history_asked: Notify,
    /// While they have no permit, lists of runners are held back, and so are the results of writing
    /// a runner's record, which is written.
    pub runners: Semaphore,
    pub tells: Semaphore,
    pub runners_asked: Notify,
    pub told: Notify,
}

impl FailingStore {
    pub fn new(store: Arc<dyn Breadcrumbs>) -> Arc<Self> {
        Arc::new(Self {
            store,
            heartbeats_fail: AtomicBool::default(),
            completes_fail: AtomicU32::default(),
            starts: watch::Sender::default(),
            events_break: AtomicBool::default(),
            events: Arc::new(Semaphore::new(1)),
            histories: Semaphore::new(1),
            gets: Semaphore::new(1),
            reports: Semaphore::new(1),
            reports_asked: Notify::default(),
            reports_given: watch::Sender::default(),
            history_asked: Notify::default(),
            runners: Semaphore::new(1),
            tells: Semaphore::new(1),
            runners_asked: Notify::default(),
            told: Notify::default(),
        })
    }
}

fn away() -> StoreError {
    StoreError::Unavailable("on purpose".into())
}

#[async_trait]
impl Records for FailingStore {
    async fn create(&self, record: NewBreadcrumb, key: Option<&str>) -> Result<Created, StoreError> {
        if record.schema_name.as_deref() != Some(schema_names::TOOL_RUNNER) {
            return self.store.create(record, key).await;
        }
        let created = self.store.create(record, key).await;
        self.told.notify_one();
        let _permit = self.tells.acquire().await.unwrap();
        created
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        let _permit = self.gets.acquire().await.unwrap();
        self.store.get(id).await
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        self.history_asked.notify_one();
        let _permit = self.histories.acquire().await.unwrap();
        self.store.history(id).await
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        self.store.update(id, version, changes).await
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        self.store.delete(id, version).await
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        match query.selector.schema_name.as_deref() {
            Some(schema_names::TOOL_ERROR) => {}
            Some(schema_names::TOOL_RUNNER) => {
                self.runners_asked.notify_one();
                let _permit = self.runners.acquire().await.unwrap();
                return self.store.list(query).await;
            }
            _ => return self.store.list(query).await,
        }
        self.reports_asked.notify_one();
        let _permit = self.reports.acquire().await.unwrap();
        let listed = self.store.list(query).await;
        self.reports_given.send_modify(|given| *given += 1);
        listed
    }

    async fn search(&self, search: &Search) -> Result<Found, StoreError> {
        self.store.search(search).await
    }
}

impl Rights for FailingStore {}

#[async_trait]
impl Events for FailingStore {
    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        self.store.latest_event().await
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        let followed = self.store.subscribe(options).await?;
        if self.events_break.load(Ordering::SeqCst) {
            return Ok(followed.take(1).chain(futures::stream::iter([Err(away())])).boxed());
        }
        let events = self.events.clone();
        let given = move |event| {
            let events = events.clone();
            async move {
                let _permit = events.acquire().await.unwrap();
                event
            }
        };
        Ok(followed.then(given).boxed())
    }
}

#[async_trait]
impl Selectors for FailingStore {
    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        self.store.create_selector(selector).await
    }

    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError> {
        self.store.selectors().await
    }

    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        self.store.update_selector(id, selector).await
    }

    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError> {
        self.store.delete_selector(id).await
    }
}

#[async_trait]
impl CallQueue for FailingStore {
    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.store.claim(claim).await
    }

    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError> {
        self.starts.send_modify(|starts| *starts += 1);
        self.store.start(lease, max_attempts).await
    }

    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<HeldLease>, StoreError> {
        if self.heartbeats_fail.load(Ordering::SeqCst) {
            return Err(away());
        }
        self.store.heartbeat(leases, lease_ms).await
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        let fails = |left: u32| left.checked_sub(1);
        if self.completes_fail.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
            return Err(away());
        }
        self.store.complete(lease, response).await
    }

    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError> {
        self.store.release(lease, release).await
    }

    async fn call(&self, request: Uuid) -> Result<Call, StoreError> {
        self.store.call(request).await
    }

    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError> {
        self.store.cancel(request).await
    }
}

#[async_trait]
impl Secrets for FailingStore {
    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError> {
        self.store.create_secret(secret).await
    }

    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError> {
        self.store.secrets().await
    }

    async fn update_secret(&self, id: Uuid, changes: SecretChanges) -> Result<SecretInfo, StoreError> {
        self.store.update_secret(id, changes).await
    }

    async fn grant_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        self.store.grant_secret(id, tool_id).await
    }

    async fn revoke_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        self.store.revoke_secret(id, tool_id).await
    }

    async fn delete_secret(&self, id: Uuid) -> Result<(), StoreError> {
        self.store.delete_secret(id).await
    }

    async fn decrypt_secret(&self, id: Uuid, reason: &str, for_tool: Option<Uuid>) -> Result<String, StoreError> {
        self.store.decrypt_secret(id, reason, for_tool).await
    }
}

impl EgressLog for FailingStore {}

impl Breadcrumbs for FailingStore {
    fn acting_for(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        self.store.acting_for(agent)
    }
}
