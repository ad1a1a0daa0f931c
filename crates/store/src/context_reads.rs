//! Limits how many lists and searches with conditions on the context run at once, per tenant and in
//! total. Each can keep a database connection busy for seconds, and other work needs connections
//! too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use breadcrumb::{Selector, StoreError};
use tokio::sync::{AcquireError, Semaphore};
use tokio::time::timeout;
use uuid::Uuid;

use crate::open::ACQUIRE_TIMEOUT;
use crate::selector_sql;
use crate::store::Inner;

pub(crate) struct ContextReads {
    /// Of all tenants together. Fair, so that a tenant waits behind at most a share of each other one.
    all: Arc<Semaphore>,
    share: usize,
    /// Of tenants that have such reads now.
    tenants: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

impl ContextReads {
    /// One tenant gets a quarter of the connections, and all tenants together half of them, at least one. The other half
    /// is for writes, calls, claims and `/health`.
    pub(crate) fn new(max_connections: u32) -> Self {
        let of = |part: usize| (max_connections as usize / part).max(1);
        Self { all: Arc::new(Semaphore::new(of(2))), share: of(4), tenants: Mutex::default() }
    }

    fn of(&self, tenant: Uuid) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = tenants.get(&tenant).and_then(Weak::upgrade) {
            return share;
        }
        tenants.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.share));
        tenants.insert(tenant, Arc::downgrade(&share));
        share
    }
}

impl Inner {
    /// Does the work, which reads what the selector admits, on the tenant's share of the connections where it may read many
    /// contexts. Waits for its turn as long as for any connection. Work that has begun goes on to its end when its caller is
    /// gone: the database would go on with its statement too, and the connection would be busy outside of the share.
    pub(crate) async fn reading<T: Send + 'static>(
        &self,
        tenant: Uuid,
        selector: &Selector,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        if !selector_sql::reads_contexts(selector) {
            return work.await;
        }
        let (share, all) = (self.context_reads.of(tenant), self.context_reads.all.clone());
        // The tenant's own turn first: what waits for it must not keep a place that others could use.
        let turns = async { Ok::<_, AcquireError>((share.acquire_owned().await?, all.acquire_owned().await?)) };
        let Ok(Ok(turns)) = timeout(ACQUIRE_TIMEOUT, turns).await else {
            let message = "too many lists and searches with context_match are running; try again later";
            return Err(StoreError::Unavailable(message.into()));
        };
        let working = self.tasks.spawn(async move {
            let done = work.await;
            drop(turns);
            done
        });
        working.await.unwrap_or_else(|error| Err(StoreError::Internal(format!("reading by context: {error}"))))
    }
}
