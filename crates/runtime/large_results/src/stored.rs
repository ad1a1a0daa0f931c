//! Reads a result that is stored in chunks.

use serde_json::Value;

use super::index::{base_of_index, chunk_name, index_name};
use super::json::{Begin, join};
use super::outline::{Section, flat};
use super::parts::Layout;
use super::text_of;
use crate::{EntryKey, EntryRole, MemoryEntry, Namespace, WorkingMemory};
use rcrt_breadcrumb::StoreError;

/// What the key of a stored result refers to.
pub enum StoredResult {
    /// The whole result, by its base key or the key of its index.
    Whole { base: EntryKey, layout: Layout, outline: Vec<Section> },
    /// One chunk, or any other entry.
    One(MemoryEntry),
}

/// A chunk of a result that is being searched or read.
pub struct ResultChunk {
    /// From 1; `None` for an entry that is not a chunk.
    pub number: Option<usize>,
    pub value: Value,
    /// Where a text starts in the whole text, in characters.
    pub start: usize,
    /// Where a document starts in the whole document.
    pub begin: Option<Begin>,
}

impl StoredResult {
    /// `None` if nothing is stored under the key, or if it expired.
    pub async fn find(memory: &WorkingMemory, key: &str, home: &Namespace) -> Result<Option<Self>, StoredResultError> {
        let key = EntryKey::read(key, home).map_err(StoredResultError::Key)?;
        let index = |key: &EntryKey| EntryKey::of(key.namespace(), &index_name(key.name()));
        let (base, entry) = match base_of_index(key.name()) {
            Some(base) => (EntryKey::of(key.namespace(), base), memory.get(&key).await?),
            None => (key.clone(), memory.get(&index(&key)).await?),
        };
        if let Some(entry) = entry
            && let EntryRole::Index { parts } = &entry.role
            && let Ok(layout) = serde_json::from_value::<Layout>(parts.clone())
        {
            let outline = entry.value.get("outline").cloned().unwrap_or_default();
            return Ok(Some(Self::Whole {
                base,
                layout,
                outline: serde_json::from_value(outline).unwrap_or_default(),
            }));
        }
        Ok(memory.get(&key).await?.map(Self::One))
    }

    /// The number of chunks that the key refers to.
    pub fn count(&self) -> usize {
        match self {
            Self::Whole { layout, .. } => layout.parts(),
            Self::One(_) => 1,
        }
    }

    /// The chunk with this index, from 0.
    pub async fn chunk(&self, memory: &WorkingMemory, index: usize) -> Result<ResultChunk, StoredResultError> {
        match self {
            Self::One(entry) => Ok(ResultChunk { number: None, value: entry.value.clone(), start: 0, begin: None }),
            Self::Whole { base, layout, .. } => {
                let key = EntryKey::of(base.namespace(), &chunk_name(base.name(), index + 1));
                let entry = memory.get(&key).await?.ok_or_else(|| StoredResultError::Gone(key.path()))?;
                let (start, begin) = match layout {
                    Layout::Text { starts, .. } => (starts.get(index).copied().unwrap_or(0), None),
                    Layout::Json { begins } => (0, begins.get(index).cloned()),
                };
                Ok(ResultChunk { number: Some(index + 1), value: entry.value, start, begin })
            }
        }
    }

    /// The whole result, reassembled.
    pub async fn whole(&self, memory: &WorkingMemory) -> Result<Value, StoredResultError> {
        let mut looks = Vec::new();
        for index in 0..self.count() {
            looks.push(self.chunk(memory, index).await?);
        }
        let broken = || StoredResultError::Gone("a chunk of the result".into());
        match self {
            Self::One(_) => looks.pop().map(|look| look.value).ok_or_else(broken),
            Self::Whole { layout: Layout::Text { .. }, .. } => {
                Ok(looks.iter().map(|look| text_of(&look.value)).collect::<String>().into())
            }
            Self::Whole { layout: Layout::Json { .. }, .. } => {
                let pieces = looks.into_iter().filter_map(|look| Some((look.begin?, look.value)));
                join(pieces).ok_or_else(broken)
            }
        }
    }

    /// The title of the section that contains this character of the text.
    pub fn section_at(&self, character: usize) -> Option<&str> {
        let Self::Whole { outline, .. } = self else { return None };
        let before = flat(outline).into_iter().filter(|section| section.start.is_some_and(|start| start <= character));
        before.max_by_key(|section| section.start).map(|section| section.title.as_str())
    }
}

/// Why a stored result cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredResultError {
    #[error("{0}")]
    Key(String),
    #[error("{0} is no longer stored")]
    Gone(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
