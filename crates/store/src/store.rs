//! The open store: its pool, its feeds and its background tasks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use breadcrumb::Deliveries;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Transaction};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::calls::{LocalRunners, QueueNotifier};
use crate::connections::IdleConnections;
use crate::context_reads::ContextReads;
use crate::events::{Announcer, Feeds};
use crate::failure::{Result, is_unreachable};
use crate::quotas::Quotas;
use crate::role_cache::RoleCache;
use crate::secrets::EnvelopeCipher;
use crate::selectors::OpenSelectors;
use crate::semantic_search::SemanticSearch;
use crate::shares::Shares;
use crate::webhooks::WebhookStore;
use crate::writing::WriteQueue;

const CLOSING: Duration = Duration::from_secs(10);

/// The store. End it with [`Store::close`]. Dropping it stops its tasks too, without waiting for
/// them.
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// What every view, task and subscription of one store shares.
pub(crate) struct Inner {
    pub(crate) pool: PgPool,
    pub(crate) context_reads: ContextReads,
    pub(crate) idle_connections: IdleConnections,
    pub(crate) write_queue: WriteQueue,
    pub(crate) queue_notifier: QueueNotifier,
    pub(crate) local_runners: Arc<LocalRunners>,
    pub(crate) shares: Shares,
    pub(crate) role_cache: RoleCache,
    pub(crate) cipher: EnvelopeCipher,
    pub(crate) feeds: Feeds,
    pub(crate) announcer: Announcer,
    pub(crate) selectors: OpenSelectors,
    /// Rings when deliveries to webhooks may wait.
    pub(crate) deliveries_queued: Notify,
    pub(crate) quotas: Quotas,
    /// `None`: search by meaning is off.
    pub(crate) semantic_search: Option<Arc<SemanticSearch>>,
    pub(crate) egress_kept: Duration,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Inner {
    /// Begins a transaction with this statement. Connections are not tested before use (that would cost a round trip
    /// every time): when the database was restarted, each pooled one fails once here and is thrown away.
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
    /// Ends the event streams and the background tasks, and closes the connections once they are free. What is not done
    /// within 10 seconds, and connections that are not given back within 10 more, are left to end with the process.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        if timeout(CLOSING, self.inner.tasks.wait()).await.is_err() {
            tracing::warn!("closed the store while its tasks were at work");
        }
        self.inner.idle_connections.release_all();
        if timeout(CLOSING, self.inner.pool.close()).await.is_err() {
            tracing::warn!("closed the store while its connections were in use");
        }
    }
}

impl Store {
    /// The queue of deliveries to webhooks, for who delivers them.
    pub fn deliveries(&self) -> Arc<dyn Deliveries> {
        Arc::new(WebhookStore(self.inner.clone()))
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
