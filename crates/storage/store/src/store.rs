//! The open store: its pool, its feeds and its background tasks.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rcrt_breadcrumb::{AuditEntry, AuditQuery, Deliveries, StoreError};
use tokio::sync::watch;
use uuid::Uuid;

use crate::Retention;
use crate::calls::applied_changes::AppliedChanges;
use crate::database::Database;
use crate::database::transaction::TenantTransaction;
use crate::events::EventStreams;
use crate::records::context_reads::ContextReads;
use crate::rights::audit;
use crate::rights::role_cache::RoleCache;
use crate::rights::shares::Shares;
use crate::rows::quotas::Quotas;
use crate::search::semantic::{EmbeddingState, SemanticSearch};
use crate::secrets::EnvelopeCipher;
use crate::webhooks::WebhookStore;
use crate::writing::Writer;

/// The store. Close it with [`Store::close`]. Dropping it also stops its tasks, without waiting for
/// them.
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// The parts of one store.
pub(crate) struct Inner {
    pub(crate) database: Arc<Database>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) shares: Shares,
    pub(crate) role_cache: RoleCache,
    pub(crate) cipher: Arc<EnvelopeCipher>,
    pub(crate) streams: Arc<EventStreams>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) context_reads: ContextReads,
    pub(crate) applied_changes: AppliedChanges,
    /// `None` if semantic search is off.
    pub(crate) semantic_search: Option<Arc<SemanticSearch>>,
    pub(crate) webhooks: Arc<WebhookStore>,
    pub(crate) retention: Retention,
    pub(crate) archive: Option<PathBuf>,
}

impl Store {
    /// Closes the event streams and the background tasks, then the connections as they become free.
    /// It waits up to 10 seconds for the tasks, and up to 10 more for the connections. What is left
    /// then ends with the process.
    pub async fn close(&self) {
        self.inner.database.close().await;
    }

    /// The queue of webhook deliveries, for the deliverer.
    pub fn deliveries(&self) -> Arc<dyn Deliveries> {
        self.inner.webhooks.clone()
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
        let mut tx = TenantTransaction::begin(&self.inner.database, owner_id).await?;
        Ok(audit::read(&mut tx, &AuditQuery { limit, ..AuditQuery::default() }).await?)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.inner.database.stop.cancel();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
