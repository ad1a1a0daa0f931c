//! Searches the tools of the tenant for a call, with the rights of the call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use parking_lot::Mutex;
use rcrt_breadcrumb::{Breadcrumbs, CatalogEntry, ErrorCode, Registration, StoreError, ToolFailure};
use rcrt_executors::ToolFinder;
use rcrt_tool_search::{FoundService, MAX_SERVICES, Question, ServiceRecords, ToolSearch};
use tokio::time::Instant;
use uuid::Uuid;

use crate::coordination::peer_runners::PeerRunners;
use crate::registry::Registry;
use crate::registry::tool_loader::ToolLoader;
use crate::registry::tool_rights::ToolRights;

/// How long a search can wait for a processor.
const PROCESSOR_WAIT: Duration = Duration::from_secs(20);

/// The index of the tools that any runner of the tenant offers. It follows the registry when it is
/// searched.
pub(crate) struct ToolDirectory {
    store: Arc<dyn Breadcrumbs>,
    registry: Arc<Registry>,
    loading: Arc<ToolLoader>,
    peers: Arc<PeerRunners>,
    /// The share of the meaning in a score.
    meaning_weight: f64,
    search: Mutex<ToolSearch>,
}

impl ToolDirectory {
    pub fn new(
        store: Arc<dyn Breadcrumbs>,
        registry: Arc<Registry>,
        loading: Arc<ToolLoader>,
        peers: Arc<PeerRunners>,
        meaning_weight: f64,
    ) -> Arc<Self> {
        Arc::new(Self { store, registry, loading, peers, meaning_weight, search: Mutex::default() })
    }

    /// Takes over what changed in the registry since the last search.
    fn update(&self, search: &mut ToolSearch) {
        let changed = self.registry.take_unindexed().unwrap_or_else(|| {
            *search = ToolSearch::default();
            self.registry.names().into_iter().collect()
        });
        for name in changed {
            match self.peers.entry(&name) {
                Some(CatalogEntry::Offered(tool)) => {
                    if !search.insert(tool) {
                        tracing::warn!(tool = %name, "there are too many tools; this one is not found by a search");
                    }
                }
                _ => {
                    search.remove(&name);
                }
            }
        }
    }

    /// Ranking computes, so it runs outside of the async runtime, in the tenant's fair share.
    async fn ranked<T: Send + 'static>(
        self: &Arc<Self>,
        owner_id: Uuid,
        rank: impl FnOnce(&ToolSearch) -> T + Send + 'static,
    ) -> Result<T, ToolFailure> {
        self.loading.listed().await;
        self.loading.changes_read().await;
        let this = self.clone();
        let work = move || {
            let mut search = this.search.lock();
            this.update(&mut search);
            rank(&search)
        };
        rcrt_compute::pool().run_until(owner_id, Instant::now() + PROCESSOR_WAIT, work).await.map_err(|error| {
            ToolFailure::new(ErrorCode::ExecutionFailed, format!("the tools cannot be searched now: {error}"))
                .retryable(true)
        })
    }
}

/// The directory for one call.
pub(crate) struct CallersTools {
    pub directory: Arc<ToolDirectory>,
    pub owner_id: Uuid,
    pub rights: ToolRights,
    /// The store as the caller sees it.
    pub seen: Arc<dyn Breadcrumbs>,
}

impl CallersTools {
    fn may_call(&self) -> impl Fn(&Registration) -> bool + Send + 'static {
        let (rights, now) = (self.rights.clone(), Utc::now());
        move |tool| rights.allows_offered(tool) && tool.removal(now).is_none()
    }

    /// With the runner's rights, because a caller cannot always see the records of tools that it
    /// can call. What it cannot call is not found.
    async fn with_meaning(&self, question: Question) -> Result<Question, ToolFailure> {
        let (directory, may_call) = (&self.directory, self.may_call());
        let counted = move |search: &ToolSearch| (search.callable_records(may_call), search.len());
        let (callable, known) = directory.ranked(self.owner_id, counted).await?;
        let question = question.with_meaning_weight(directory.meaning_weight);
        Ok(question.with_meaning(&*directory.store, &callable, known).await)
    }
}

#[async_trait]
impl ToolFinder for CallersTools {
    async fn tools(&self, question: Question, limit: usize) -> Result<Vec<(Registration, f64)>, ToolFailure> {
        let question = self.with_meaning(question).await?;
        let may_call = self.may_call();
        let found =
            self.directory.ranked(self.owner_id, move |search| search.tools(&question, may_call, limit)).await?;
        let registered = found.into_iter().filter_map(|found| match self.directory.peers.entry(&found.name)? {
            // It may have changed since.
            CatalogEntry::Offered(tool) if self.rights.allows_offered(&tool) => Some((tool, found.score)),
            _ => None,
        });
        Ok(registered.collect())
    }

    async fn services(&self, question: Question) -> Result<Vec<FoundService>, ToolFailure> {
        let question = self.with_meaning(question).await?;
        let records = ServiceRecords::read(&*self.seen).await.map_err(|error| failed(&error))?;
        let may_call = self.may_call();
        let rank = move |search: &ToolSearch| search.services(&question, may_call, &records, MAX_SERVICES);
        self.directory.ranked(self.owner_id, rank).await
    }
}

fn failed(error: &StoreError) -> ToolFailure {
    tracing::warn!(%error, "the services cannot be listed");
    ToolFailure::new(ErrorCode::ExecutionFailed, "the services cannot be listed now").retryable(error.is_retryable())
}
