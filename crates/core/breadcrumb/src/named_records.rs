//! Records with a name in their context, such as guides. Every agent that can write records can add
//! some.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::{BreadcrumbListItem, BreadcrumbQuery, Records, Selector, StoreError};

/// The maximum number of records that are read.
const MOST: usize = 1_000;

/// The records that match, with their contexts, up to a bound. They are read in pages of this size.
pub async fn named_records(
    store: &(impl Records + ?Sized),
    selector: Selector,
    page: u32,
) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    let mut query = BreadcrumbQuery { selector, limit: page, offset: 0, include_context: true };
    let mut found = Vec::new();
    loop {
        let items = store.list(&query).await?;
        let is_last = items.len() < page as usize;
        found.extend(items);
        query.offset += page;
        if is_last || found.len() >= MOST {
            return Ok(found);
        }
    }
}

/// What records with these ids contain, sorted by name. Of those with the same name the oldest
/// counts, so that none can be replaced by another author.
pub fn oldest_by_name<T>(found: impl IntoIterator<Item = (Uuid, T)>, name: impl Fn(&T) -> &str) -> Vec<T> {
    let mut oldest: BTreeMap<String, (Uuid, T)> = BTreeMap::new();
    for (id, value) in found {
        // Ids are ordered by creation time.
        if oldest.get(name(&value)).is_none_or(|(other, _)| id < *other) {
            oldest.insert(name(&value).to_owned(), (id, value));
        }
    }
    oldest.into_values().map(|(_, value)| value).collect()
}
