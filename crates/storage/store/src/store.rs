//! The open store: its pool, its feeds and its background tasks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{Deliveries, StoreError};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::database::connections::IdleConnections;
use crate::database::failure::{Result, is_unreachable};
use crate::database::transaction::TenantTransaction;
use crate::events::selectors::OpenSelectors;
use crate::events::{Announcer, Feeds};
use crate::records::context_reads::ContextReads;
use crate::rights::audit::{self, AuditEntry};
use crate::rights::role_cache::RoleCache;
use crate::rights::shares::Shares;
use crate::rows::quotas::Quotas;
use crate::search::semantic::{EmbeddingState, SemanticSearch};
use crate::secrets::EnvelopeCipher;
use crate::webhooks::WebhookStore;
use crate::writing::{QueueNotifier, WriteQueue};

const CLOSING: Duration = Duration::from_secs(10);

/// The store. Close it with [`Store::close`]. Dropping it also stops its tasks, without waiting for
/// them.
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// What the views, tasks and subscriptions of one store share.
pub(crate) struct Inner {
    pub(crate) pool: PgPool,
    pub(crate) context_reads: ContextReads,
    pub(crate) idle_connections: IdleConnections,
    pub(crate) write_queue: WriteQueue,
    pub(crate) queue_notifier: QueueNotifier,
    pub(crate) shares: Shares,
    pub(crate) role_cache: RoleCache,
    pub(crate) cipher: EnvelopeCipher,
    pub(crate) feeds: Feeds,
    pub(crate) announcer: Announcer,
    pub(crate) selectors: OpenSelectors,
    /// Notified when webhook deliveries may be queued.
    pub(crate) deliveries_queued: Notify,
    pub(crate) quotas: Quotas,
    /// `None` if semantic search is off.
    pub(crate) semantic_search: Option<Arc<SemanticSearch>>,
    pub(crate) egress_kept: Duration,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Inner {
    /// Begins a transaction with this statement. Connections are not tested before use, because
    /// that would cost a round trip each time. After the database was restarted, each pooled
    /// connection fails once here and is discarded.
    pub(crate) async fn begin(&self, statement: &str) -> Result<Transaction<'static, Postgres>> {
        let mut dead = 0;
        loop {
            match self.pool.begin_with(AssertSqlSafe(statement)).await {
                Err(error)
                    if is_unreachable(&error)
                        && !matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed)
                        && dead < self.pool.options().get_max_connections() =>
                {
                    dead += 1;
                }
                other => return Ok(other?),
            }
        }
    }
}

impl Store {
    /// Closes the event streams and the background tasks, then the connections as they become free.
    /// It waits up to 10 seconds for the tasks, and up to 10 more for the connections. What is left
    /// then ends with the process.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        if timeout(CLOSING, self.inner.tasks.wait()).await.is_err() {
            tracing::warn!("closed the store while its tasks were running");
        }
        self.inner.idle_connections.release_all();
        if timeout(CLOSING, self.inner.pool.close()).await.is_err() {
            tracing::warn!("closed the store while its connections were in use");
        }
    }
}

impl Store {
    /// The queue of webhook deliveries, for the deliverer.
    pub fn deliveries(&self) -> Arc<dyn Deliveries> {
        Arc::new(WebhookStore(self.inner.clone()))
    }

    /// The state of semantic search, as this process saw it at most a few seconds ago.
    pub fn embedding_state(&self) -> EmbeddingState {
        self.inner.semantic_search.as_ref().map_or(EmbeddingState::Off, |search| search.state().borrow().clone())
    }

    /// Notifies of each batch that was embedded and each change of [`Store::embedding_state`].
    /// `None` if semantic search is off.
    pub fn embedding_changes(&self) -> Option<watch::Receiver<EmbeddingState>> {
        Some(self.inner.semantic_search.as_ref()?.state().subscribe())
    }

    /// The newest lines of a tenant's audit log, newest first.
    pub async fn audit_log(&self, owner_id: Uuid, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let mut tx = TenantTransaction::begin(&self.inner, owner_id).await?;
        Ok(audit::read(&mut tx, limit).await?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.inner.stop.cancel();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("pool", &self.inner.pool).finish_non_exhaustive()
    }
}
