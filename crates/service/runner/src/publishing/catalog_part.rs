//! One part of the catalog in the store.

use rcrt_breadcrumb::{BreadcrumbChanges, Catalog, NewBreadcrumb, Records, StoreError, object_bytes};
use uuid::Uuid;

use crate::backoff::with_retries;

/// The maximum number of attempts while other runners change the part.
const MAX_TRIES: usize = 5;

/// A part of the catalog as this runner last saw it in the store.
pub(crate) struct PublishedPart {
    pub id: Uuid,
    pub version: i64,
    pub fingerprint: String,
    /// Of its content, as JSON.
    pub bytes: usize,
}

impl PublishedPart {
    /// `part`, as this version of a record.
    pub fn new(id: Uuid, version: i64, part: &NewBreadcrumb) -> Self {
        Self { id, version, fingerprint: part.fingerprint(), bytes: object_bytes(&part.context) }
    }

    /// Updates the part to this content. False if it was deleted, if another runner divided the
    /// catalog into another number of parts, or if other runners keep changing it.
    pub async fn update_to(&mut self, store: &dyn Records, part: &NewBreadcrumb) -> Result<bool, StoreError> {
        if part.fingerprint() == self.fingerprint {
            return Ok(true);
        }
        for _ in 0..MAX_TRIES {
            if let Some(updated_part) = update(store, self.id, self.version, part).await? {
                *self = updated_part;
                return Ok(true);
            }
            // Another runner changed it, usually to the same content.
            let current = match with_retries("read a part of the catalog", || store.get(self.id)).await {
                Ok(current) => current,
                Err(StoreError::NotFound { .. }) => return Ok(false),
                Err(error) => return Err(error),
            };
            if Catalog::parts_in(&current.tags) != Catalog::parts_in(&part.tags) {
                return Ok(false);
            }
            self.version = current.version;
            if current.context == part.context && current.tags == part.tags {
                *self = Self::new(self.id, self.version, part);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// `None` if it was deleted, or another runner changed it first.
pub(crate) async fn update(
    store: &dyn Records,
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
        Ok(updated) => Ok(Some(PublishedPart::new(id, updated.version, part))),
        Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) async fn create(store: &dyn Records, part: &NewBreadcrumb) -> Result<(), StoreError> {
    let number = Catalog::part_tag(&part.tags).unwrap_or(&part.title);
    // The same part has the same key on every runner.
    let key = format!("{number}:{}", &part.fingerprint()[..32]);
    let create = |key| with_retries("write a part of the catalog", move || store.create(part.clone(), key));
    let created = create(Some(&key)).await?;
    // Another runner has just written it, or it was written before and deleted.
    if created.replayed && matches!(store.get(created.id).await, Err(StoreError::NotFound { .. })) {
        create(None).await?;
    }
    Ok(())
}

pub(crate) async fn delete(store: &dyn Records, id: Uuid) -> Result<(), StoreError> {
    match with_retries("delete a part of the catalog", || store.delete(id, None)).await {
        Err(StoreError::NotFound { .. }) => Ok(()),
        outcome => outcome,
    }
}
