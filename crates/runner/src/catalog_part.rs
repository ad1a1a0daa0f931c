//! One part of the catalog in the store.

use breadcrumb::{BreadcrumbChanges, Breadcrumbs, Catalog, NewBreadcrumb, StoreError};
use uuid::Uuid;

use crate::backoff::with_retries;

/// How often another runner may change the part meanwhile.
const MAX_TRIES: usize = 5;

/// A part as this runner knows it in the store.
pub(crate) struct PublishedPart {
    pub id: Uuid,
    pub version: i64,
    pub fingerprint: String,
}

impl PublishedPart {
    /// Brings the part to what it is to say. False when it is gone, or others change it again and again.
    pub async fn update_to(&mut self, store: &dyn Breadcrumbs, part: &NewBreadcrumb) -> Result<bool, StoreError> {
        let fingerprint = part.fingerprint();
        if fingerprint == self.fingerprint {
            return Ok(true);
        }
        for _ in 0..MAX_TRIES {
            if let Some(kept) = update(store, self.id, self.version, part).await? {
                *self = kept;
                return Ok(true);
            }
            // Another runner changed it: mostly to the very same.
            let there = match with_retries("read a part of the catalog", || store.get(self.id)).await {
                Ok(there) => there,
                Err(StoreError::NotFound { .. }) => return Ok(false),
                Err(error) => return Err(error),
            };
            self.version = there.version;
            if there.context == part.context && there.tags == part.tags {
                self.fingerprint = fingerprint;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// `None` where it is gone, or another runner was faster.
pub(crate) async fn update(
    store: &dyn Breadcrumbs,
    id: Uuid,
    version: i64,
    part: &NewBreadcrumb,
) -> Result<Option<PublishedPart>, StoreError> {
    let changes = BreadcrumbChanges {
        title: Some(part.title.clone()),
        context: Some(part.context.clone()),
        tags: Some(part.tags.clone()),
        ..BreadcrumbChanges::default()
    };
    match with_retries("change a part of the catalog", || store.update(id, version, changes.clone())).await {
        Ok(updated) => Ok(Some(PublishedPart { id, version: updated.version, fingerprint: part.fingerprint() })),
        Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) async fn create(store: &dyn Breadcrumbs, part: &NewBreadcrumb) -> Result<(), StoreError> {
    let number = Catalog::part_tag(&part.tags).unwrap_or(&part.title);
    // The same part has the same key on every runner.
    let key = format!("{number}:{}", &part.fingerprint()[..32]);
    let create = |key| with_retries("write a part of the catalog", move || store.create(part.clone(), key));
    let created = create(Some(&key)).await?;
    // Another runner wrote it now, or it was written before and is gone.
    if created.replayed && matches!(store.get(created.id).await, Err(StoreError::NotFound { .. })) {
        create(None).await?;
    }
    Ok(())
}

pub(crate) async fn delete(store: &dyn Breadcrumbs, id: Uuid) -> Result<(), StoreError> {
    match with_retries("delete a part of the catalog", || store.delete(id, None)).await {
        Err(StoreError::NotFound { .. }) => Ok(()),
        outcome => outcome,
    }
}
