//! An entry and its record.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use rcrt_breadcrumb::{BreadcrumbListItem, NewBreadcrumb, TtlType, schema_names::MEMORY_ENTRY};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::key::{EntryKey, Namespace, tag};

/// An entry to save.
#[derive(Debug, Clone)]
pub struct NewEntry {
    pub key: EntryKey,
    pub value: Value,
    /// The agent's own category, for search; at most 100 characters.
    pub category: Option<String>,
    /// How long the entry is stored; `None`: until it is deleted. Whole seconds, at least one.
    pub ttl: Option<Duration>,
    pub saved_by: Option<Uuid>,
    pub role: EntryRole,
}

/// What the runtime uses an entry for.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum EntryRole {
    #[default]
    Plain,
    /// A chunk of the large result with this base key. Lists omit chunks by default.
    Chunk { of: String },
    /// The index of a large result, with what is needed to reassemble it.
    Index { parts: Value },
}

/// A stored entry.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryEntry {
    pub key: EntryKey,
    pub value: Value,
    pub category: Option<String>,
    pub saved_at: String,
    /// When it expires, by the clock of the runner that saved it.
    pub expires_at: Option<String>,
    pub role: EntryRole,
}

/// The result of a save.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// Whether the key existed before.
    pub replaced: bool,
    pub saved_at: String,
    pub expires_at: Option<String>,
}

impl NewEntry {
    /// Text or JSON under a key, stored until it is deleted.
    pub fn new(key: EntryKey, value: Value) -> Self {
        Self { key, value, category: None, ttl: None, saved_by: None, role: EntryRole::Plain }
    }

    pub(crate) fn record(&self, now: DateTime<Utc>) -> (NewBreadcrumb, Saved) {
        let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let seconds = self.ttl.map(|ttl| ttl.as_secs().max(1));
        let expires_at = seconds
            .and_then(|seconds| now.checked_add_signed(chrono::Duration::try_seconds(i64::try_from(seconds).ok()?)?))
            .map(time);
        let saved = Saved { replaced: false, saved_at: time(now), expires_at };
        let mut context = Map::new();
        let mut put = |name: &str, value: Value| context.insert(name.to_owned(), value);
        put("namespace", self.key.namespace().as_str().into());
        put("key", self.key.name().into());
        put("value", self.value.clone());
        if let Some(category) = &self.category {
            put("category", category.as_str().into());
        }
        put("saved_at", saved.saved_at.as_str().into());
        if let Some(at) = &saved.expires_at {
            put("expires_at", at.as_str().into());
        }
        if let Some(agent) = self.saved_by {
            put("saved_by", agent.to_string().into());
        }
        match &self.role {
            EntryRole::Plain => {}
            EntryRole::Chunk { of } => {
                put("chunk_of", of.as_str().into());
            }
            EntryRole::Index { parts } => {
                put("parts", parts.clone());
            }
        }
        let record = NewBreadcrumb {
            title: format!("Memory: {}", self.key).chars().take(500).collect(),
            context,
            tags: self.tags(),
            schema_name: Some(MEMORY_ENTRY.into()),
            ttl_type: Some(if seconds.is_some() { TtlType::Duration } else { TtlType::Never }),
            ttl_config: Some(seconds.map_or_else(|| json!({}), |seconds| json!({"duration": seconds}))),
            ..NewBreadcrumb::default()
        };
        (record, saved)
    }

    fn tags(&self) -> Vec<String> {
        let mut tags = vec!["memory".to_owned(), self.key.tag()];
        if let EntryRole::Chunk { .. } = self.role {
            tags.push(chunks_in(self.key.namespace().as_str()));
        } else {
            tags.push(directly_in(self.key.namespace()));
            tags.extend(self.key.namespace().with_ancestors().map(anywhere_in));
        }
        tags.extend(self.category.as_deref().map(of_category));
        tags
    }
}

impl MemoryEntry {
    /// `None` if the record is not a valid entry: any agent can write such records.
    pub(crate) fn read(item: BreadcrumbListItem) -> Option<Self> {
        let mut context = item.context?;
        let text = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
        let namespace = Namespace::read(&text("namespace")?).ok()?;
        let key = EntryKey::read(&format!("{namespace}/{}", text("key")?), &namespace).ok()?;
        let (category, saved_at, expires_at) = (text("category"), text("saved_at"), text("expires_at"));
        let role = match (text("chunk_of"), context.get("parts")) {
            (Some(of), _) => EntryRole::Chunk { of },
            (None, Some(parts)) => EntryRole::Index { parts: parts.clone() },
            (None, None) => EntryRole::Plain,
        };
        Some(Self {
            key,
            value: context.get_mut("value").map(Value::take)?,
            category,
            saved_at: saved_at.unwrap_or_else(|| item.updated_at.to_rfc3339_opts(SecondsFormat::Secs, true)),
            expires_at,
            role,
        })
    }
}

/// The tag of the entries directly in this namespace.
pub(crate) fn directly_in(namespace: &Namespace) -> String {
    tag("memory-of:", namespace.as_str())
}

/// The tag of the entries in this namespace and in the namespaces below it.
pub(crate) fn anywhere_in(namespace: &str) -> String {
    tag("memory-in:", namespace)
}

pub(crate) fn chunks_in(namespace: &str) -> String {
    tag("memory-chunks-in:", namespace)
}

pub(crate) fn of_category(category: &str) -> String {
    tag("memory-category:", category)
}
