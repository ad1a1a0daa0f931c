//! Entries by namespace and key. Saving under an existing key replaces its value. Of concurrent
//! saves, the last one wins.

use std::sync::Arc;

use chrono::Utc;
use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, MEMORY_OF_CALLER_TAG, NewBreadcrumb, Profiles, Records,
    Search, SearchMode, Selector, StoreError, schema_names::MEMORY_ENTRY,
};
use rcrt_executors::{ToolCall, TriggerChain};
use uuid::Uuid;

use crate::entry::{MemoryEntry, NewEntry, Saved, anywhere_in, chunks_in, directly_in, of_category};
use crate::key::{EntryKey, Namespace};

/// Each failed attempt means that a concurrent save succeeded.
const ATTEMPTS: usize = 200;
/// Records per page, contexts included: each can have 4 MiB, and the store returns at most 64 MiB
/// at once.
const PAGE: u32 = 15;

/// The working memory of a tenant, for the writes of one call.
#[derive(Clone)]
pub struct WorkingMemory {
    store: Arc<dyn Records>,
    chain: TriggerChain,
    profiles: Profiles,
    agent: Option<Uuid>,
}

/// Which entries to read.
#[derive(Debug, Clone)]
pub struct Selection {
    pub namespace: Namespace,
    /// Also those of nested namespaces.
    pub recursive: bool,
    pub category: Option<String>,
    /// Also the chunks of large results.
    pub chunks: bool,
}

/// One page of entries.
pub struct EntryPage {
    /// A save that races with another can appear twice. The first one counts.
    pub entries: Vec<MemoryEntry>,
    /// The offset of the next page, if there may be one.
    pub next: Option<u32>,
}

impl Selection {
    /// Everything in a namespace except the chunks of large results.
    pub fn of(namespace: Namespace) -> Self {
        Self { namespace, recursive: true, category: None, chunks: false }
    }

    fn selector(&self) -> Selector {
        let here = if self.recursive { anywhere_in(self.namespace.as_str()) } else { directly_in(&self.namespace) };
        let mut any_tags = vec![here];
        if self.chunks {
            any_tags.push(chunks_in(self.namespace.as_str()));
        }
        Selector {
            any_tags,
            all_tags: self.category.as_deref().map(of_category).into_iter().collect(),
            schema_name: Some(MEMORY_ENTRY.into()),
            ..Selector::default()
        }
    }
}

impl WorkingMemory {
    /// `chain` and `profiles` are those of the writing call. They mark what is written, so that no
    /// triggered tool triggers itself through it, and triggered calls are bound to the same
    /// profiles. `agent`: the one that asked for the call. Entries of other agents that are only
    /// callers do not count: a caller cannot replace what others read.
    pub fn new(store: Arc<dyn Records>, chain: TriggerChain, profiles: Profiles, agent: Option<Uuid>) -> Self {
        Self { store, chain, profiles, agent }
    }

    /// For a tool of this call.
    pub fn of(call: &ToolCall) -> Self {
        let (store, chain, profiles) = (call.breadcrumbs.clone(), call.chain.clone(), call.profiles.clone());
        Self::new(store, chain, profiles, call.request.agent_id)
    }

    pub async fn save(&self, entry: &NewEntry) -> Result<Saved, StoreError> {
        let tag = entry.key.tag();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (record, saved) = entry.record(Utc::now());
            let found = self.records(&tag).await?;
            let Some((newest, older)) = found.split_first() else {
                self.create(record).await?;
                self.keep_newest(&tag).await?;
                return Ok(saved);
            };
            match self.replace(newest, record).await {
                Ok(()) => {
                    if !self.remove(older).await? {
                        self.keep_newest(&tag).await?;
                    }
                    return Ok(Saved { replaced: true, ..saved });
                }
                Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) if attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub async fn get(&self, key: &EntryKey) -> Result<Option<MemoryEntry>, StoreError> {
        let query = BreadcrumbQuery { limit: PAGE, include_context: true, ..by_tag(&key.tag()) };
        let found = self.store.list(&query).await?.into_iter().filter(|item| self.counts(item));
        Ok(found.filter_map(MemoryEntry::read).find(|entry| entry.key == *key))
    }

    /// Returns whether it existed.
    pub async fn delete(&self, key: &EntryKey) -> Result<bool, StoreError> {
        let mut deleted = false;
        loop {
            let found = self.records(&key.tag()).await?;
            if found.is_empty() {
                return Ok(deleted);
            }
            for item in found {
                match self.store.delete(item.id, None).await {
                    Ok(()) => deleted = true,
                    Err(StoreError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Entries after the first `offset` records, the most recently saved first. Only one page is in
    /// memory at a time, because each entry can be large.
    pub async fn page(&self, selection: &Selection, offset: u32) -> Result<EntryPage, StoreError> {
        let query = BreadcrumbQuery { selector: selection.selector(), limit: PAGE, offset, include_context: true };
        let found = self.store.list(&query).await?;
        let next = (found.len() == PAGE as usize).then(|| offset.saturating_add(PAGE));
        let counting = found.into_iter().filter(|item| self.counts(item));
        Ok(EntryPage { entries: counting.filter_map(MemoryEntry::read).collect(), next })
    }

    /// The keys of entries whose first words contain the query's words in any grammatical form,
    /// best match first.
    pub async fn ranked(&self, selection: &Selection, words: &str, most: u32) -> Result<Vec<String>, StoreError> {
        let search =
            Search { mode: Some(SearchMode::Text), nn: most, selector: selection.selector(), ..Search::of(words) };
        let found = self.store.search(&search).await?.items;
        let path = |item: BreadcrumbListItem| item.title.strip_prefix("Memory: ").map(str::to_owned);
        Ok(found.into_iter().filter(|item| self.counts(item)).filter_map(path).collect())
    }

    /// Whether it is not an entry of another caller.
    fn counts(&self, item: &BreadcrumbListItem) -> bool {
        let own = self.agent.map(|agent| agent.to_string());
        let callers = item.tags.iter().filter_map(|tag| tag.strip_prefix(MEMORY_OF_CALLER_TAG));
        callers.into_iter().all(|caller| Some(caller) == own.as_deref())
    }

    /// The records of a key, newest first. All writers use this order to agree on the one that
    /// counts.
    async fn records(&self, tag: &str) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        let found = self.store.list(&by_tag(tag)).await?;
        Ok(found.into_iter().filter(|item| self.counts(item)).collect())
    }

    async fn create(&self, mut record: NewBreadcrumb) -> Result<(), StoreError> {
        self.mark(&mut record.tags, 1);
        self.store.create(record, None).await.map(|_| ())
    }

    fn mark(&self, tags: &mut Vec<String>, version: i64) {
        if !self.chain.is_empty() {
            self.chain.mark(tags, version);
        }
        tags.extend(self.profiles.tags());
    }

    async fn replace(&self, old: &BreadcrumbListItem, mut record: NewBreadcrumb) -> Result<(), StoreError> {
        self.mark(&mut record.tags, old.version.saturating_add(1));
        let changes = BreadcrumbChanges {
            title: Some(record.title),
            context: Some(record.context),
            tags: Some(record.tags),
            ttl_type: record.ttl_type,
            ttl_config: record.ttl_config,
            ..BreadcrumbChanges::default()
        };
        self.store.update(old.id, old.version, changes).await.map(|_| ())
    }

    /// Called after a create, because a concurrent save can have created one too. All writers keep
    /// the same record, and the last one to look sees all. If an older record was updated
    /// meanwhile, it is now the newest, and ours is deleted.
    async fn keep_newest(&self, tag: &str) -> Result<(), StoreError> {
        for _ in 0..ATTEMPTS {
            let found = self.records(tag).await?;
            if self.remove(found.get(1..).unwrap_or_default()).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Deletes only the versions that were read: a record that changed since can be the newest now.
    /// Returns whether all of them are gone.
    async fn remove(&self, records: &[BreadcrumbListItem]) -> Result<bool, StoreError> {
        let mut all_gone = true;
        for record in records {
            match self.store.delete(record.id, Some(record.version)).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => {}
                Err(StoreError::VersionConflict { .. }) => all_gone = false,
                Err(error) => return Err(error),
            }
        }
        Ok(all_gone)
    }
}

fn by_tag(tag: &str) -> BreadcrumbQuery {
    let selector =
        Selector { all_tags: vec![tag.to_owned()], schema_name: Some(MEMORY_ENTRY.into()), ..Selector::default() };
    BreadcrumbQuery { selector, ..BreadcrumbQuery::default() }
}
