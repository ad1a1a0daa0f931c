//! Keeps the `tool.catalog.v1` records as this runner sees the tools. Several runners act as one
//! agent and keep the same records. Each writes only what changed in its own view, so two runners
//! with different views (one has a program that the other lacks) do not overwrite each other
//! forever. A part is written again without a change only when it was deleted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, Catalog, CatalogEntry, NewBreadcrumb, Selector, StoreError,
    schema_names::TOOL_CATALOG,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::backoff::with_retries;
use crate::catalog_part::{PublishedPart, create, delete, update};
use crate::peer_runners::PeerRunners;
use crate::rcrt_catalog;
use crate::registry::Registry;

/// After a change, more of them are waited for this long …
const QUIET: Duration = Duration::from_millis(100);
/// … but not longer than this in all.
const LONGEST: Duration = Duration::from_secs(1);
/// After a catalog that could not be written.
const AGAIN: Duration = Duration::from_secs(10);
/// How often other runners may get in between.
const MAX_TRIES: usize = 10;

pub(crate) struct CatalogPublisher {
    store: Arc<dyn Breadcrumbs>,
    registry: Arc<Registry>,
    peers: Arc<PeerRunners>,
    lost: Notify,
    rcrt_compat: bool,
}

/// The catalog as it was written last, part by part.
struct PublishedCatalog {
    names: Vec<BTreeSet<String>>,
    parts: Vec<PublishedPart>,
}

impl CatalogPublisher {
    pub fn new(
        store: Arc<dyn Breadcrumbs>,
        registry: Arc<Registry>,
        peers: Arc<PeerRunners>,
        rcrt_compat: bool,
    ) -> Arc<Self> {
        Arc::new(Self { store, registry, peers, lost: Notify::new(), rcrt_compat })
    }

    /// A part was deleted: by another runner that sees less, or by a person.
    pub fn look_for_parts(&self) {
        self.lost.notify_one();
    }

    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.work() => {}
        }
    }

    async fn work(&self) {
        // Otherwise the first catalog would lack what only other runners serve.
        self.peers.listed().await;
        let mut changes = self.registry.changes.subscribe();
        let mut written: Option<PublishedCatalog> = None;
        let mut may_be_stale = !self.rcrt_compat;
        let mut counted = Vec::new();
        loop {
            changes.mark_unchanged();
            let counts = self.registry.counts_by_profile();
            if counts != counted {
                for (profile, open, closed) in &counts {
                    tracing::info!(%profile, open, closed, "the catalog offers tools");
                }
                counted = counts;
            }
            written = match self.synchronize(written.take()).await {
                Ok(written) => Some(written),
                Err(error) => {
                    tracing::warn!(%error, "the catalog of tools cannot be written");
                    sleep(AGAIN).await;
                    continue;
                }
            };
            if may_be_stale {
                match rcrt_catalog::remove(&*self.store).await {
                    Ok(()) => may_be_stale = false,
                    Err(error) => tracing::warn!(%error, "the catalog in RCRT's shape cannot be removed"),
                }
            }
            tokio::select! {
                more = changes.changed() => if more.is_err() {
                    return;
                },
                () = self.lost.notified() => written = None,
            }
            let latest = Instant::now() + LONGEST;
            while timeout_at(latest.min(Instant::now() + QUIET), changes.changed()).await.is_ok() {}
        }
    }

    /// Writes what changed since the last time; everything where that is not known, or where parts are to be divided.
    async fn synchronize(&self, written: Option<PublishedCatalog>) -> Result<PublishedCatalog, StoreError> {
        let written = self.synchronize_parts(written).await?;
        // After our own, which what goes wrong here must not hold up.
        if self.rcrt_compat {
            rcrt_catalog::synchronize(&*self.store, &self.peers.offered()).await?;
        }
        Ok(written)
    }

    async fn synchronize_parts(&self, written: Option<PublishedCatalog>) -> Result<PublishedCatalog, StoreError> {
        let changed = self.registry.take_changed();
        if let Some(written) = written
            && let Some(written) = self.write_changed(written, &changed).await?
        {
            return Ok(written);
        }
        for _ in 0..MAX_TRIES {
            if let Some(written) = self.write_all().await? {
                return Ok(written);
            }
        }
        Err(StoreError::Internal("other runners changed the catalog again and again".into()))
    }

    /// `None` when that is not enough.
    async fn write_changed(
        &self,
        mut written: PublishedCatalog,
        changed: &HashSet<String>,
    ) -> Result<Option<PublishedCatalog>, StoreError> {
        let mut entries: BTreeMap<usize, Vec<CatalogEntry>> = BTreeMap::new();
        for name in changed {
            let number = Catalog::part_of(name, written.parts.len());
            if self.peers.entry(name).is_some() {
                written.names[number].insert(name.clone());
            } else {
                written.names[number].remove(name);
            }
            entries.entry(number).or_default();
        }
        if written.names.iter().map(BTreeSet::len).sum::<usize>() < written.parts.len() {
            // Mostly empty ones: perhaps fewer will do.
            return Ok(None);
        }
        for (number, mut entries) in entries {
            entries.extend(written.names[number].iter().filter_map(|name| self.peers.entry(name)));
            let Some(part) = Catalog::part(number, &entries) else { return Ok(None) };
            if !written.parts[number].update_to(&*self.store, &part).await? {
                return Ok(None);
            }
        }
        Ok(Some(written))
    }

    /// Writes what differs from what is there. `None` when another runner got in between: look again.
    async fn write_all(&self) -> Result<Option<PublishedCatalog>, StoreError> {
        let mut there: BTreeMap<String, Vec<BreadcrumbListItem>> = BTreeMap::new();
        let mut surplus = Vec::new();
        for row in self.list().await? {
            // One without a part's tag is another program's.
            if let Some(tag) = Catalog::part_tag(&row.tags) {
                there.entry(tag.to_owned()).or_default().push(row);
            }
        }
        let names = self.registry.names();
        let catalog = self.catalog(&names);
        let parts = catalog.records_beside(there.len());
        let mut kept = Vec::new();
        for part in &parts {
            let mut rows = Catalog::part_tag(&part.tags).and_then(|tag| there.remove(tag)).unwrap_or_default();
            // More than one came from runners that started at the same time; all of them keep the
            // same.
            rows.sort_by_key(|row| row.id);
            let mut rows = rows.into_iter();
            match rows.next() {
                // Another may have made one of another view, or changed it: look.
                None => create(&*self.store, part).await?,
                Some(row) => kept.extend(self.update(&row, part).await?),
            }
            surplus.extend(rows.map(|row| row.id));
        }
        surplus.extend(there.into_values().flatten().map(|row| row.id));
        // Last, so that each tool is in some part at all times.
        for id in surplus {
            delete(&*self.store, id).await?;
        }
        if kept.len() < parts.len() {
            return Ok(None);
        }
        tracing::debug!(tools = catalog.tools.len(), waiting = catalog.waiting.len(), "the catalog is written");
        let mut by_part = vec![BTreeSet::new(); parts.len()];
        for name in names {
            by_part[Catalog::part_of(&name, parts.len())].insert(name);
        }
        Ok(Some(PublishedCatalog { names: by_part, parts: kept }))
    }

    fn catalog(&self, names: &[String]) -> Catalog {
        let (mut tools, mut waiting) = (Vec::new(), Vec::new());
        for entry in names.iter().filter_map(|name| self.peers.entry(name)) {
            match entry {
                CatalogEntry::Offered(tool) => tools.push(tool),
                CatalogEntry::Waiting(tool) => waiting.push(tool),
            }
        }
        Catalog::new(tools, waiting)
    }

    async fn list(&self) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        let selector = Selector {
            all_tags: vec![Catalog::TAG.into()],
            schema_name: Some(TOOL_CATALOG.into()),
            ..Selector::default()
        };
        let mut query = BreadcrumbQuery { selector, limit: Catalog::PARTS_AT_ONCE, offset: 0, include_context: true };
        let mut rows = Vec::new();
        loop {
            let page = with_retries("read the catalog of tools", || self.store.list(&query)).await?;
            let is_last = page.len() < query.limit as usize;
            rows.extend(page);
            if is_last {
                return Ok(rows);
            }
            query.offset += query.limit;
        }
    }

    async fn update(
        &self,
        there: &BreadcrumbListItem,
        part: &NewBreadcrumb,
    ) -> Result<Option<PublishedPart>, StoreError> {
        if there.context.as_ref() == Some(&part.context) && there.tags == part.tags {
            return Ok(Some(PublishedPart { id: there.id, version: there.version, fingerprint: part.fingerprint() }));
        }
        update(&*self.store, there.id, there.version, part).await
    }
}
