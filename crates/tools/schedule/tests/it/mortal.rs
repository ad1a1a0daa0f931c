//! A store whose user dies at one of its writes: the write is held, and its caller is stopped
//! there. Everything else is the real store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, Breadcrumbs, Call,
    CallQueue, Claim, ClaimRequest, Created, EgressLog, EventNumber, Events, Found, HeldLease, Lease, NewBreadcrumb,
    NewSecret, Records, Release, Rights, Search, SecretChanges, SecretInfo, Secrets, Selector, SelectorSubscription,
    Selectors, StoreError, SubscribeOptions, SubscriptionStream,
};
use tokio::sync::Notify;
use uuid::Uuid;

/// Where the user dies: just before or just after its nth write (create or update), counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Before(usize),
    After(usize),
}

pub struct Mortal {
    store: Arc<dyn Breadcrumbs>,
    end: End,
    writes: AtomicUsize,
    /// Signals that the end was reached.
    reached: Notify,
    /// This many of the next writes fail: the store is unavailable, or reports so after it wrote.
    away: AtomicUsize,
    /// Lists with conditions on the context fail.
    refuses_lists: AtomicBool,
    /// Signals that such a list failed.
    list_refused: Notify,
}

impl Mortal {
    pub fn new(store: Arc<dyn Breadcrumbs>, end: End) -> Arc<Self> {
        Arc::new(Self {
            store,
            end,
            writes: AtomicUsize::new(0),
            reached: Notify::new(),
            away: AtomicUsize::new(0),
            refuses_lists: AtomicBool::new(false),
            list_refused: Notify::new(),
        })
    }

    /// A store whose user does not die.
    pub fn immortal(store: Arc<dyn Breadcrumbs>) -> Arc<Self> {
        Self::new(store, End::Before(usize::MAX))
    }

    pub fn away_for(&self, writes: usize) {
        self.away.store(writes, Ordering::SeqCst);
    }

    pub fn refuse_lists(&self, refuse: bool) {
        self.refuses_lists.store(refuse, Ordering::SeqCst);
    }

    pub async fn list_refused(&self) {
        self.list_refused.notified().await;
    }

    pub fn is_away(&self) -> bool {
        self.away.load(Ordering::SeqCst) > 0
    }

    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let one_less = |left: usize| left.checked_sub(1);
        if let Ok(left) = self.away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            if left % 2 == 0 {
                write.await?;
            }
            return Err(StoreError::Unavailable("on purpose".into()));
        }
        let number = self.writes.fetch_add(1, Ordering::SeqCst);
        if self.end == End::Before(number) {
            self.held().await;
        }
        let written = write.await;
        if self.end == End::After(number) {
            self.held().await;
        }
        written
    }

    async fn held(&self) {
        self.reached.notify_one();
        std::future::pending::<()>().await;
    }
}

#[async_trait]
impl Records for Mortal {
    async fn create(&self, record: NewBreadcrumb, key: Option<&str>) -> Result<Created, StoreError> {
        self.write(self.store.create(record, key)).await
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        self.write(self.store.update(id, version, changes)).await
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        self.store.get(id).await
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        self.store.history(id).await
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        self.store.delete(id, version).await
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        if !query.selector.context_match.is_empty() && self.refuses_lists.load(Ordering::SeqCst) {
            self.list_refused.notify_one();
            return Err(StoreError::Unavailable("on purpose".into()));
        }
        self.store.list(query).await
    }

    async fn search(&self, search: &Search) -> Result<Found, StoreError> {
        self.store.search(search).await
    }
}

impl Rights for Mortal {}

#[async_trait]
impl Events for Mortal {
    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        self.store.latest_event().await
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        self.store.subscribe(options).await
    }
}

#[async_trait]
impl Selectors for Mortal {
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
impl CallQueue for Mortal {
    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.store.claim(claim).await
    }

    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError> {
        self.store.start(lease, max_attempts).await
    }

    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<HeldLease>, StoreError> {
        self.store.heartbeat(leases, lease_ms).await
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
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
impl Secrets for Mortal {
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

impl EgressLog for Mortal {}

impl Breadcrumbs for Mortal {
    fn acting_for(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        self.store.acting_for(agent)
    }
}
