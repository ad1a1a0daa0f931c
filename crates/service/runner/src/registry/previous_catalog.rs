//! The tools that were valid before this runner started, from the catalog, which only runners and
//! curators can write. Such a version is offered at once, and validated for its first call.

use std::collections::{HashMap, HashSet};

use rcrt_breadcrumb::{BreadcrumbListItem, Catalog, Records, StoreError};
use serde_json::Value;
use uuid::Uuid;

use crate::backoff::with_retries;

/// With fewer parts (of some 24 kB) all of them are read at once.
const FEW_PARTS: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct PreviousCatalog {
    /// The version of a record that was offered last, and its name. No version if the tool waited
    /// for requirements.
    by_record: HashMap<Uuid, (Option<i64>, String)>,
    by_name: HashMap<String, Uuid>,
}

impl PreviousCatalog {
    /// The current content of the catalog.
    pub async fn read(store: &dyn Records) -> Result<Self, StoreError> {
        Self::of(store, Vec::new()).await
    }

    /// What the part of this name says, if there are so many parts.
    pub async fn read_part(store: &dyn Records, name: &str, parts: usize) -> Result<Self, StoreError> {
        Self::of(store, vec![Catalog::tag_of_part(Catalog::part_of(name, parts))]).await
    }

    /// How many parts there are, if they are many and each name is in the one of its hash. While a
    /// runner divides the catalog again, it may not be.
    pub async fn many_parts(store: &dyn Records) -> Result<Option<usize>, StoreError> {
        let rows = list_parts(store, Vec::new(), false).await?;
        let tags: HashSet<&str> = rows.iter().filter_map(|row| Catalog::part_tag(&row.tags)).collect();
        let parts = rows.len();
        let is_whole = parts == tags.len() && (0..parts).all(|part| tags.contains(&*Catalog::tag_of_part(part)));
        Ok((is_whole && parts >= FEW_PARTS).then_some(parts))
    }

    async fn of(store: &dyn Records, any_tags: Vec<String>) -> Result<Self, StoreError> {
        let mut previous = Self::default();
        for row in list_parts(store, any_tags, true).await? {
            let Some(mut context) = row.context.filter(|_| Catalog::part_tag(&row.tags).is_some()) else { continue };
            for kind in ["tools", "waiting"] {
                if let Some(Value::Array(entries)) = context.remove(kind) {
                    previous.add(entries);
                }
            }
        }
        Ok(previous)
    }

    /// Parts arrive newest first: an older entry for the same tool is outdated.
    fn add(&mut self, entries: Vec<Value>) {
        for entry in entries {
            let text = |key: &str| entry.get(key).and_then(Value::as_str);
            let Some((name, id)) = text("name").zip(text("tool_id").and_then(|id| id.parse::<Uuid>().ok())) else {
                continue;
            };
            let version = entry.get("tool_version").and_then(Value::as_i64);
            self.by_name.entry(name.to_owned()).or_insert(id);
            self.by_record.entry(id).or_insert_with(|| (version, name.to_owned()));
        }
    }

    /// Whether this version was offered under this name.
    pub fn was_offered(&self, id: Uuid, version: i64, name: &str) -> bool {
        self.by_record.get(&id).is_some_and(|(good, was)| *good == Some(version) && was == name)
    }

    /// The record's name in the catalog.
    pub fn name_of(&self, id: Uuid) -> Option<&str> {
        self.by_record.get(&id).map(|(_, name)| name.as_str())
    }

    /// The record that has the name in the catalog.
    pub fn owner_of(&self, name: &str) -> Option<Uuid> {
        self.by_name.get(name).copied()
    }
}

/// The records of the catalog, or those with one of these tags, newest first.
pub(crate) async fn list_parts(
    store: &dyn Records,
    any_tags: Vec<String>,
    include_context: bool,
) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    with_retries("read the catalog of tools", || Catalog::list_parts(store, any_tags.clone(), include_context)).await
}
