//! Which store serves which tenant, as this process last read it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use rcrt_breadcrumb::StoreError;
use rcrt_store::Store;
use sqlx::PgPool;
use tokio::sync::watch;
use uuid::Uuid;

use crate::adding::guard;
use crate::{HOME, directory};

/// Opens the store of the cell with this name on the database at this URL. The error is for the
/// log.
pub type OpenStore = Box<dyn Fn(String, String) -> BoxFuture<'static, Result<Arc<Store>, String>> + Send + Sync>;

/// The pause after a cell could not be opened.
const RETRY: Duration = Duration::from_secs(1);

/// How long a new tenant waits for its cell.
const OPENING: Duration = Duration::from_secs(10);

pub(crate) struct Routes {
    pub(crate) home: Arc<Store>,
    map: watch::Sender<Map>,
    open: OpenStore,
    /// When a cell that cannot be opened is tried again.
    retries: Mutex<HashMap<String, Instant>>,
}

#[derive(Default)]
struct Map {
    version: i64,
    /// The cells of tenants that are not at home.
    tenants: HashMap<Uuid, String>,
    /// The cells that a tenant is in or moves to.
    wanted: HashSet<String>,
    open: HashMap<String, Arc<Store>>,
}

fn unreachable(cell: &str) -> StoreError {
    StoreError::Unavailable(format!("the database of the cell {cell} cannot be reached"))
}

impl Routes {
    pub(crate) fn new(home: Arc<Store>, open: OpenStore) -> Self {
        Self { home, map: watch::Sender::new(Map::default()), open, retries: Mutex::default() }
    }

    /// The store of the tenant's cell. [`StoreError::Unavailable`] if it is not open.
    pub(crate) fn store(&self, tenant: Uuid) -> Result<Arc<Store>, StoreError> {
        self.of(&self.map.borrow(), tenant)
    }

    fn of(&self, map: &Map, tenant: Uuid) -> Result<Arc<Store>, StoreError> {
        let Some(cell) = map.tenants.get(&tenant) else { return Ok(self.home.clone()) };
        map.open.get(cell).cloned().ok_or_else(|| unreachable(cell))
    }

    pub(crate) fn cell(&self, tenant: Uuid) -> String {
        self.map.borrow().tenants.get(&tenant).cloned().unwrap_or_else(|| HOME.to_owned())
    }

    /// The open stores besides the first.
    pub(crate) fn others(&self) -> Vec<Arc<Store>> {
        self.map.borrow().open.values().cloned().collect()
    }

    /// All open stores, the first one first.
    pub(crate) fn all(&self) -> Vec<Arc<Store>> {
        let mut all = vec![self.home.clone()];
        all.extend(self.others());
        all
    }

    /// Opens a cell, which may have no tenant yet.
    pub(crate) async fn opened(&self, cell: &str) -> Result<(), StoreError> {
        self.map.send_if_modified(|map| map.wanted.insert(cell.to_owned()));
        self.until(cell, |map| map.open.contains_key(cell)).await
    }

    /// Waits until this process knows that the tenant is in this cell.
    pub(crate) async fn entered(&self, tenant: Uuid, cell: &str) -> Result<(), StoreError> {
        self.until(cell, |map| map.tenants.get(&tenant).map_or(HOME, String::as_str) == cell).await
    }

    async fn until(&self, cell: &str, is_true: impl FnMut(&Map) -> bool) -> Result<(), StoreError> {
        let mut changes = self.map.subscribe();
        let waited = tokio::time::timeout(OPENING, changes.wait_for(is_true)).await;
        let is_in_time = waited.is_ok_and(|found| found.is_ok());
        if is_in_time { Ok(()) } else { Err(unreachable(cell)) }
    }

    /// Returns when the tenant is no longer in this store.
    pub(crate) async fn moved(self: Arc<Self>, tenant: Uuid, from: Arc<Store>) {
        let mut changes = self.map.subscribe();
        let has_moved = |map: &Map| self.of(map, tenant).is_ok_and(|store| !Arc::ptr_eq(&store, &from));
        if changes.wait_for(has_moved).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Reads what changed in the directory.
    pub(crate) async fn refresh(&self, directory: &PgPool) -> Result<(), sqlx::Error> {
        let after = self.map.borrow().version;
        let changes = directory::changes(directory, after).await?;
        let Some(newest) = changes.last().map(|entry| entry.version) else { return Ok(()) };
        self.map.send_modify(|map| {
            map.version = newest;
            for entry in changes {
                // A cell that a tenant moves to is opened before the tenant is there.
                let cells = [Some(&entry.cell), entry.moving_to.as_ref()];
                map.wanted.extend(cells.into_iter().flatten().filter(|cell| *cell != HOME).cloned());
                if let Some(from) = &entry.moved_from
                    && after > 0
                {
                    tracing::info!(tenant = %entry.tenant, from, to = entry.cell, "the tenant has moved");
                }
                if entry.cell == HOME {
                    map.tenants.remove(&entry.tenant);
                } else {
                    map.tenants.insert(entry.tenant, entry.cell);
                }
            }
        });
        Ok(())
    }

    /// Opens the cells that have or get tenants and are not open. One that fails is tried again
    /// after a pause.
    pub(crate) async fn open_wanted(&self, directory: &PgPool) -> Result<(), sqlx::Error> {
        let missing: Vec<String> = {
            let (map, retries, now) = (self.map.borrow(), self.retries.lock(), Instant::now());
            let is_due = |cell: &String| retries.get(cell).is_none_or(|due| *due <= now);
            map.wanted.iter().filter(|cell| !map.open.contains_key(*cell) && is_due(cell)).cloned().collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        for (cell, url) in directory::cells(directory).await? {
            if !missing.contains(&cell) {
                continue;
            }
            // After an upgrade, tables that are new have no trigger yet.
            let opened = match guard(&url).await {
                Ok(()) => (self.open)(cell.clone(), url).await,
                Err(error) => Err(error.to_string()),
            };
            match opened {
                Ok(store) => {
                    tracing::info!(cell, "the cell is open");
                    self.map.send_modify(|map| {
                        map.open.insert(cell, store);
                    });
                }
                Err(error) => {
                    tracing::warn!(cell, error, "the cell cannot be opened");
                    self.retries.lock().insert(cell, Instant::now() + RETRY);
                }
            }
        }
        Ok(())
    }
}
