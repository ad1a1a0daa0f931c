//! Keeps the `tool.catalog.v1` records as this runner sees the tools. Several runners act as one agent and keep the
//! same records; each writes only when its own view has changed, so that two that see different things (one has a
//! program that the other lacks) do not write over each other for ever. Only a part that is gone is written again unasked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{
    BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, Catalog, MAX_PAGE, NewBreadcrumb, Selector,
    StoreError, schema_names::TOOL_CATALOG,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::persist;
use crate::registry::Registry;

/// After a change, more of them are waited for this long …
const QUIET: Duration = Duration::from_millis(100);
/// … but not longer than this in all.
const LONGEST: Duration = Duration::from_secs(1);
/// After a catalog that could not be written.
const AGAIN: Duration = Duration::from_secs(10);
/// How often other runners may get in between.
const MAX_TRIES: usize = 10;

pub(crate) struct Publishing {
    store: Arc<dyn Breadcrumbs>,
    registry: Arc<Registry>,
    lost: Notify,
}

impl Publishing {
    pub fn new(store: Arc<dyn Breadcrumbs>, registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self { store, registry, lost: Notify::new() })
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
        let mut changes = self.registry.changes.subscribe();
        let mut written: Option<Catalog> = None;
        loop {
            changes.mark_unchanged();
            let catalog = self.registry.catalog();
            if written.as_ref() != Some(&catalog) {
                match self.write(&catalog).await {
                    Ok(()) => {
                        tracing::debug!(
                            tools = catalog.tools.len(),
                            waiting = catalog.waiting.len(),
                            "the catalog is written"
                        );
                        written = Some(catalog);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the catalog of tools cannot be written");
                        sleep(AGAIN).await;
                        continue;
                    }
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

    async fn write(&self, catalog: &Catalog) -> Result<(), StoreError> {
        let parts = catalog.records();
        for _ in 0..MAX_TRIES {
            if self.bring_up(&parts).await? {
                return Ok(());
            }
        }
        Err(StoreError::Internal("other runners changed the catalog again and again".into()))
    }

    /// Writes what differs from what is there. False when another runner got in between: look again.
    async fn bring_up(&self, parts: &[NewBreadcrumb]) -> Result<bool, StoreError> {
        let mut there: BTreeMap<String, Vec<BreadcrumbListItem>> = BTreeMap::new();
        let mut surplus = Vec::new();
        for row in self.list().await? {
            match part_tag(&row.tags).filter(|tag| parts.iter().any(|part| part_tag(&part.tags) == Some(tag))) {
                Some(tag) => there.entry(tag.to_owned()).or_default().push(row),
                None => surplus.push(row.id),
            }
        }
        let mut is_done = true;
        for part in parts {
            let mut rows = part_tag(&part.tags).and_then(|tag| there.remove(tag)).unwrap_or_default();
            // More than one came from runners that began at the same moment; all of them keep the same.
            rows.sort_by_key(|row| row.id);
            let mut rows = rows.into_iter();
            is_done &= match rows.next() {
                None => self.create(part).await?,
                Some(row) => self.update(&row, part).await?,
            };
            surplus.extend(rows.map(|row| row.id));
        }
        // Last, so that each tool stands somewhere all the time.
        for id in surplus {
            self.delete(id).await?;
        }
        Ok(is_done)
    }

    async fn list(&self) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        let selector = Selector {
            all_tags: vec![Catalog::TAG.into()],
            schema_name: Some(TOOL_CATALOG.into()),
            ..Selector::default()
        };
        let query = BreadcrumbQuery { selector, limit: MAX_PAGE, offset: 0, include_context: true };
        persist("read the catalog of tools", || self.store.list(&query)).await
    }

    async fn create(&self, part: &NewBreadcrumb) -> Result<bool, StoreError> {
        let number = part_tag(&part.tags).unwrap_or_default();
        // The same part has the same key on every runner.
        let key = format!("{number}:{}", &part.fingerprint()[..32]);
        let create = |key| persist("write a part of the catalog", move || self.store.create(part.clone(), key));
        let created = create(Some(&key)).await?;
        // Another runner wrote it now, or it was written before and is gone.
        if created.replayed && matches!(self.store.get(created.id).await, Err(StoreError::NotFound { .. })) {
            create(None).await?;
        }
        // Another may have made one of another view: look.
        Ok(false)
    }

    async fn update(&self, there: &BreadcrumbListItem, part: &NewBreadcrumb) -> Result<bool, StoreError> {
        if there.context.as_ref() == Some(&part.context) && there.tags == part.tags {
            return Ok(true);
        }
        let changes = BreadcrumbChanges {
            title: Some(part.title.clone()),
            context: Some(part.context.clone()),
            tags: Some(part.tags.clone()),
            ..BreadcrumbChanges::default()
        };
        let update = || self.store.update(there.id, there.version, changes.clone());
        match persist("change a part of the catalog", update).await {
            Ok(_) => Ok(true),
            Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn delete(&self, id: Uuid) -> Result<(), StoreError> {
        match persist("delete a part of the catalog", || self.store.delete(id, None)).await {
            Err(StoreError::NotFound { .. }) => Ok(()),
            outcome => outcome,
        }
    }
}

fn part_tag(tags: &[String]) -> Option<&str> {
    tags.iter().map(String::as_str).find(|tag| tag.starts_with("catalog:part:"))
}
