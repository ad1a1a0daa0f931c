//! The indexes by which this process searches the tools of tenants.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{Catalog, StoreError};
use rcrt_tool_search::ToolSearch;
use tokio::time::Instant;
use uuid::Uuid;

/// The most tools in all indexes together. The least recently used ones are dropped first.
const MAX_TOOLS: usize = 60_000;
const MAX_TENANTS: usize = 64;
/// How long a search can wait for a processor.
const PROCESSOR_WAIT: Duration = Duration::from_secs(20);

#[derive(Default)]
pub(crate) struct ToolSearches {
    /// The most recently used one is the last.
    by_tenant: Mutex<Vec<TenantSearch>>,
}

struct TenantSearch {
    owner_id: Uuid,
    tools: usize,
    search: Arc<Mutex<ToolSearch>>,
}

impl ToolSearches {
    /// Ranks the tools of the catalog. The first search of a tenant makes its index, later ones
    /// apply what changed. This computes, so it runs in the tenant's fair share of processors.
    pub async fn ranked<T: Send + 'static>(
        &self,
        owner_id: Uuid,
        catalog: Catalog,
        rank: impl FnOnce(&ToolSearch) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let search = self.of(owner_id, catalog.tools.len());
        let work = move || {
            let mut search = search.lock();
            search.set(&catalog);
            rank(&search)
        };
        let until = Instant::now() + PROCESSOR_WAIT;
        rcrt_compute::pool()
            .run_until(owner_id, until, work)
            .await
            .map_err(|error| StoreError::Busy(format!("the tools were not searched: {error}; try again later")))
    }

    fn of(&self, owner_id: Uuid, tools: usize) -> Arc<Mutex<ToolSearch>> {
        let mut all = self.by_tenant.lock();
        let known = all.iter().position(|one| one.owner_id == owner_id).map(|at| all.remove(at).search);
        let search = known.unwrap_or_default();
        all.push(TenantSearch { owner_id, tools, search: search.clone() });
        while all.len() > 1 && (all.len() > MAX_TENANTS || all.iter().map(|one| one.tools).sum::<usize>() > MAX_TOOLS) {
            all.remove(0);
        }
        search
    }
}
