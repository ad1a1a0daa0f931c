//! How many of a tenant's lists and searches with conditions on the context run at once: each may keep a database
//! connection busy for seconds, and all tenants share the connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use breadcrumb::{Selector, StoreError};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use uuid::Uuid;

use crate::open::ACQUIRE_TIMEOUT;
use crate::selecting;
use crate::store::Inner;

pub(crate) struct ContextReads {
    share: usize,
    /// Of tenants that have such reads now.
    tenants: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

impl ContextReads {
    /// One tenant gets a quarter of the connections, at least one.
    pub(crate) fn new(max_connections: u32) -> Self {
        Self { share: (max_connections as usize / 4).max(1), tenants: Mutex::default() }
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
    /// contexts. Waits for one as long as for any connection. Work that has begun goes on to its end when its caller is
    /// gone: the database would go on with its statement too, and the connection would be busy outside of the share.
    pub(crate) async fn reading<T: Send + 'static>(
        &self,
        tenant: Uuid,
        selector: &Selector,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        if !selecting::reads_contexts(selector) {
            return work.await;
        }
        let share = self.context_reads.of(tenant).acquire_owned();
        let Ok(Ok(turn)) = timeout(ACQUIRE_TIMEOUT, share).await else {
            let message = "as many of the tenant's lists and searches with context_match run as may at once";
            return Err(StoreError::Unavailable(message.into()));
        };
        let working = self.tasks.spawn(async move {
            let done = work.await;
            drop(turn);
            done
        });
        working.await.unwrap_or_else(|error| Err(StoreError::Internal(format!("reading by context: {error}"))))
    }
}
