//! Keeps the `tool.catalog.v1` records up to date with the tools as this runner sees them. Several
//! runners act as one agent and update the same records. Each writes only what changed in its own
//! view, so two runners with different views (one has a program that the other lacks) do not
//! overwrite each other forever. An unchanged part is written again only if it was deleted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{Days, NaiveTime, Utc};
use rcrt_breadcrumb::{
    BreadcrumbListItem, Catalog, CatalogEntry, Event, EventKind, NewBreadcrumb, Records, StoreError, object_bytes,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::coordination::peer_runners::PeerRunners;
use crate::coordination::reporter::{EVERY, READING};
use crate::publishing::catalog_part::{PublishedPart, create, delete, update};
use crate::publishing::rcrt_catalog;
use crate::registry::Registry;
use crate::registry::previous_catalog::list_parts;
use crate::registry::readiness::SETTINGS;

/// After a change, the publisher waits this long for more changes …
const QUIET: Duration = Duration::from_millis(100);
/// The catalog follows a change of secrets, grants or settings within a second.
const _: () = assert!(EVERY.as_millis() + READING.as_millis() + QUIET.as_millis() <= 1000);
const _: () = assert!(SETTINGS.as_millis() + QUIET.as_millis() <= 1000);
/// … but not longer than this in total.
const LONGEST: Duration = Duration::from_secs(1);
/// The pause after the catalog could not be written.
const AGAIN: Duration = Duration::from_secs(10);
/// The maximum number of attempts while other runners change the catalog.
const MAX_TRIES: usize = 10;

/// Ends with the present day of UTC.
async fn next_day() {
    let now = Utc::now();
    let midnight = (now.date_naive() + Days::new(1)).and_time(NaiveTime::MIN).and_utc();
    sleep((midnight - now).to_std().unwrap_or_default()).await;
}

pub(crate) struct CatalogPublisher {
    store: Arc<dyn Records>,
    registry: Arc<Registry>,
    peers: Arc<PeerRunners>,
    lost: Notify,
    /// How many parts this runner wrote last, or is about to write; 0 before that.
    parts: AtomicUsize,
    rcrt_compat: bool,
}

/// The catalog as it was last written, part by part.
struct PublishedCatalog {
    names: Vec<BTreeSet<String>>,
    parts: Vec<PublishedPart>,
}

impl PublishedCatalog {
    fn tools(&self) -> usize {
        self.names.iter().map(BTreeSet::len).sum()
    }
}

impl CatalogPublisher {
    pub fn new(
        store: Arc<dyn Records>,
        registry: Arc<Registry>,
        peers: Arc<PeerRunners>,
        rcrt_compat: bool,
    ) -> Arc<Self> {
        Arc::new(Self { store, registry, peers, lost: Notify::new(), parts: AtomicUsize::new(0), rcrt_compat })
    }

    /// A record of the catalog, in our or in RCRT's form, was written or deleted. Everything is
    /// written again if the catalog was divided into another number of parts, or if a record is
    /// missing.
    pub fn part_changed(&self, event: &Event) {
        let known = self.parts.load(Ordering::Relaxed);
        if known == 0 {
            return;
        }
        let divided = Catalog::parts_in(&event.tags);
        let is_lost = match event.kind {
            EventKind::Deleted => divided.is_none_or(|parts| parts == known),
            EventKind::Created | EventKind::Updated => {
                Catalog::part_tag(&event.tags).is_some() && divided != Some(known)
            }
        };
        if is_lost {
            self.lost.notify_one();
        }
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
                    Err(error) => tracing::warn!(%error, "the catalog in RCRT's format cannot be removed"),
                }
            }
            tokio::select! {
                more = changes.changed() => if more.is_err() {
                    return;
                },
                () = self.lost.notified() => written = None,
                // RCRT's clients read the record itself, so it changes when a tool's last day ends.
                () = next_day(), if self.rcrt_compat => {}
            }
            let latest = Instant::now() + LONGEST;
            while timeout_at(latest.min(Instant::now() + QUIET), changes.changed()).await.is_ok() {}
        }
    }

    /// Writes what changed since the last time. Writes everything if that is unknown, or if parts
    /// must be split.
    async fn synchronize(&self, written: Option<PublishedCatalog>) -> Result<PublishedCatalog, StoreError> {
        let written = self.synchronize_parts(written).await?;
        // After our own catalog, so that a failure here does not delay it.
        if self.rcrt_compat {
            rcrt_catalog::synchronize(&*self.store, &self.peers.offered()).await?;
        }
        Ok(written)
    }

    async fn synchronize_parts(&self, written: Option<PublishedCatalog>) -> Result<PublishedCatalog, StoreError> {
        let changed = self.registry.take_changed();
        // At a start, and below when most parts are empty. Otherwise two runners, of which one sees
        // far fewer tools, would divide the catalog in turns.
        let mut may_be_fewer = self.parts.load(Ordering::Relaxed) == 0;
        if let Some(mut written) = written {
            let numbers = self.assign(&mut written, changed);
            may_be_fewer = written.tools() < written.parts.len();
            if !may_be_fewer && self.write_parts(&mut written, numbers).await? {
                return Ok(written);
            }
        }
        for _ in 0..MAX_TRIES {
            if let Some(written) = self.write_all(may_be_fewer).await? {
                return Ok(written);
            }
        }
        Err(StoreError::Internal("other runners kept changing the catalog".into()))
    }

    /// Puts changed names into their parts, and returns the numbers of these parts.
    fn assign(&self, written: &mut PublishedCatalog, changed: HashSet<String>) -> BTreeSet<usize> {
        let mut numbers = BTreeSet::new();
        for name in changed {
            let number = Catalog::part_of(&name, written.parts.len());
            numbers.insert(number);
            if self.peers.entry(&name).is_some() {
                written.names[number].insert(name);
            } else {
                written.names[number].remove(&name);
            }
        }
        numbers
    }

    /// False if everything must be written again.
    async fn write_parts(&self, written: &mut PublishedCatalog, numbers: BTreeSet<usize>) -> Result<bool, StoreError> {
        let count = written.parts.len();
        let mut bytes: usize = written.parts.iter().map(|part| part.bytes).sum();
        let mut parts = Vec::new();
        for number in numbers {
            let entries: Vec<_> = written.names[number].iter().filter_map(|name| self.peers.entry(name)).collect();
            let Some(part) = Catalog::part(number, count, &entries) else { return Ok(false) };
            bytes = bytes - written.parts[number].bytes + object_bytes(&part.context);
            parts.push((number, part));
        }
        if Catalog::needs_more_parts(count, written.tools(), bytes) {
            return Ok(false);
        }
        for (number, part) in parts {
            if !written.parts[number].update_to(&*self.store, &part).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes what differs from the store's records. `None` if another runner interfered: try
    /// again.
    async fn write_all(&self, may_be_fewer: bool) -> Result<Option<PublishedCatalog>, StoreError> {
        let mut existing: BTreeMap<String, Vec<BreadcrumbListItem>> = BTreeMap::new();
        let mut surplus = Vec::new();
        let rows = list_parts(&*self.store, Vec::new(), true).await?;
        // Of the part that was written last, because another runner may be dividing the catalog.
        let divided = rows.iter().find_map(|row| Catalog::parts_in(&row.tags));
        for row in rows {
            // A record without a part's tag belongs to another program.
            if let Some(tag) = Catalog::part_tag(&row.tags) {
                existing.entry(tag.to_owned()).or_default().push(row);
            }
        }
        let names = self.registry.names();
        let catalog = self.catalog(&names);
        let parts = catalog.records_beside(divided.unwrap_or(existing.len()), may_be_fewer);
        self.parts.store(parts.len(), Ordering::Relaxed);
        let mut kept = Vec::new();
        // The last one first: a part gives entries only to later ones, which have them before.
        for part in parts.iter().rev() {
            let mut rows = Catalog::part_tag(&part.tags).and_then(|tag| existing.remove(tag)).unwrap_or_default();
            // Duplicates come from runners that started at the same time. All runners keep the same
            // one.
            rows.sort_by_key(|row| row.id);
            let mut rows = rows.into_iter();
            match rows.next() {
                // Another runner may have created a different part meanwhile, so it is read again.
                None => create(&*self.store, part).await?,
                Some(row) => kept.extend(self.update(&row, part).await?),
            }
            surplus.extend(rows.map(|row| row.id));
        }
        if kept.len() < parts.len() {
            return Ok(None);
        }
        surplus.extend(existing.into_values().flatten().map(|row| row.id));
        // Deleted last, so that each tool is in some part at all times.
        for id in surplus {
            delete(&*self.store, id).await?;
        }
        kept.reverse();
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

    async fn update(
        &self,
        existing: &BreadcrumbListItem,
        part: &NewBreadcrumb,
    ) -> Result<Option<PublishedPart>, StoreError> {
        if existing.context.as_ref() == Some(&part.context) && existing.tags == part.tags {
            return Ok(Some(PublishedPart::new(existing.id, existing.version, part)));
        }
        update(&*self.store, existing.id, existing.version, part).await
    }
}
