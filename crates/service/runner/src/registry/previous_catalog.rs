//! The tools that were valid before this runner started, from the catalog, which only runners and
//! curators can write. Such a version is offered at once, and validated for its first call.

use std::collections::{HashMap, HashSet};

use rcrt_breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, Catalog, Records, Selector, StoreError, schema_names::TOOL_CATALOG,
};
use serde_json::Value;
use uuid::Uuid;

use crate::backoff::with_retries;

/// A part has at most 256 KiB, and a page of the store at most 64 MiB.
const PAGE: u32 = 200;
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
        Self::of(store, vec![Catalog::TAG.into()]).await
    }

    /// What the part of this name says, if there are so many parts.
    pub async fn read_part(store: &dyn Records, name: &str, parts: usize) -> Result<Self, StoreError> {
        Self::of(store, vec![Catalog::TAG.into(), Catalog::tag_of_part(Catalog::part_of(name, parts))]).await
    }

    /// How many parts there are, if they are many and each name is in the one of its hash. While a
    /// runner divides the catalog again, it may not be.
    pub async fn many_parts(store: &dyn Records) -> Result<Option<usize>, StoreError> {
        let (mut tags, mut rows) = (HashSet::new(), 0);
        each(store, vec![Catalog::TAG.into()], false, |row| {
            rows += 1;
            tags.extend(Catalog::part_tag(&row.tags).map(str::to_owned));
        })
        .await?;
        let is_whole = rows == tags.len() && (0..rows).all(|part| tags.contains(&Catalog::tag_of_part(part)));
        Ok((is_whole && rows >= FEW_PARTS).then_some(rows))
    }

    async fn of(store: &dyn Records, all_tags: Vec<String>) -> Result<Self, StoreError> {
        let mut previous = Self::default();
        each(store, all_tags, true, |row| {
            let Some(mut context) = row.context.filter(|_| Catalog::part_tag(&row.tags).is_some()) else { return };
            for kind in ["tools", "waiting"] {
                if let Some(Value::Array(entries)) = context.remove(kind) {
                    previous.add(entries);
                }
            }
        })
        .await?;
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

/// Hands over the records with these tags, newest first.
async fn each(
    store: &dyn Records,
    all_tags: Vec<String>,
    include_context: bool,
    mut take: impl FnMut(BreadcrumbListItem),
) -> Result<(), StoreError> {
    let selector = Selector { all_tags, schema_name: Some(TOOL_CATALOG.into()), ..Selector::default() };
    let mut query = BreadcrumbQuery { selector, limit: PAGE, offset: 0, include_context };
    loop {
        let page = with_retries("read the catalog of tools", || store.list(&query)).await?;
        let is_last = page.len() < PAGE as usize;
        page.into_iter().for_each(&mut take);
        if is_last {
            return Ok(());
        }
        query.offset += PAGE;
    }
}
