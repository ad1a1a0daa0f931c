//! Returns a result whole, in chunks, or truncated.

use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use rcrt_breadcrumb::{LargeResult, LargeResultKind, LargeResultMarker, StoreError, ToolRequest, json_bytes};
use serde_json::{Map, Value, json};
use tokio::task::{JoinSet, spawn_blocking};

use super::excerpt::{text_of, truncate};
use super::index::{chunk_name, chunk_prefix, index, index_name, table};
use super::parts::{Layout, Split, split};
use super::threshold::{MAX_RESULT_BYTES, Settings, chunk_chars};
use crate::{EntryKey, EntryRole, Namespace, NewEntry, WorkingMemory};

/// Chunks that are written concurrently.
const WRITERS: usize = 4;
/// Attempts per write while the store is unavailable.
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// A result of at most this size is measured on the current thread.
const QUICK_BYTES: usize = 16 * 1024;

/// What the caller gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortened {
    /// The whole result, or a [`LargeResult`].
    pub output: Value,
    /// Goes into the response's metadata: `large_result` if the output is not the whole result.
    pub metadata: Map<String, Value>,
}

/// Shortens a result that fits the tool's output schema. The chunks of a large one are stored in
/// the namespace of the request's session. Without a session, or if the store refuses them, the
/// result is truncated.
pub async fn shorten(output: Value, settings: &Settings, request: &ToolRequest, memory: &WorkingMemory) -> Shortened {
    let most = settings.most_for(&request.tool, request);
    if fits_within(&output, most.min(QUICK_BYTES)) {
        return Shortened { output, metadata: Map::new() };
    }
    let namespace = request.session.as_deref().map(Namespace::session);
    let chunk = chunk_chars(most);
    let is_session = namespace.is_some();
    // Counting and splitting a large result takes long, so it runs on a separate thread.
    let kind = if output.is_string() { LargeResultKind::Text } else { LargeResultKind::Json };
    let measured = spawn_blocking(move || measure(output, most, is_session.then_some(chunk))).await;
    let (text, characters, split) = match measured {
        Ok(Measured::Small(output)) => return Shortened { output, metadata: Map::new() },
        Ok(Measured::Large { cut, characters, split }) => (cut, characters, split),
        Err(error) => {
            tracing::error!(%error, "a large result cannot be split");
            return cut_result("[the result was too large, and could not be split]".into(), kind, 0);
        }
    };
    if let (Some(namespace), Some(split)) = (namespace, split) {
        let kept = ResultWriter::of(&namespace, request, settings, memory.clone());
        match kept.write(&split).await {
            Ok(()) => return kept.index(&split, characters, most),
            Err(error) => tracing::warn!(%error, "the chunks of a large result cannot be stored; it is truncated"),
        }
    }
    cut_result(text, kind, characters)
}

/// A result without the rest of its text.
fn cut_result(text: String, kind: LargeResultKind, characters: usize) -> Shortened {
    let described = json!({"characters": characters, "truncated": true});
    let output = LargeResult {
        marker: LargeResultMarker::LargeResult,
        text,
        kind,
        characters,
        truncated: true,
        parts: 0,
        key: None,
        part_prefix: None,
        expires_at: None,
    };
    Shortened { output: json!(output), metadata: Map::from_iter([("large_result".into(), described)]) }
}

/// Whether its JSON has at most this many bytes, even if every character needs an escape. Stops as
/// soon as it knows.
fn fits_within(value: &Value, most: usize) -> bool {
    fn left_after(value: &Value, left: usize) -> Option<usize> {
        // A control character needs six bytes as an escape.
        let text = |text: &str, left: usize| left.checked_sub(3 + 6 * text.len());
        match value {
            Value::Null | Value::Bool(_) => left.checked_sub(6),
            Value::Number(_) => left.checked_sub(32),
            Value::String(string) => text(string, left),
            Value::Array(items) => items.iter().try_fold(left.checked_sub(3)?, |left, item| left_after(item, left)),
            Value::Object(entries) => {
                entries.iter().try_fold(left.checked_sub(3)?, |left, (key, item)| left_after(item, text(key, left)?))
            }
        }
    }
    left_after(value, most).is_some()
}

enum Measured {
    Small(Value),
    Large { cut: String, characters: usize, split: Option<Split> },
}

fn measure(output: Value, most: usize, chunk: Option<usize>) -> Measured {
    // A character has at least one byte, so most results need no count.
    let bytes = json_bytes(&output);
    if bytes <= most {
        return Measured::Small(output);
    }
    let text = text_of(&output);
    let characters = text.chars().count();
    if characters <= most && bytes <= MAX_RESULT_BYTES {
        drop(text);
        return Measured::Small(output);
    }
    // The truncated text must fit into a response in bytes as well, at up to six bytes per
    // character.
    let cut = truncate(&text, most.min(MAX_RESULT_BYTES / 6));
    let split = chunk.map(|chunk| split(&output, chunk));
    Measured::Large { cut, characters, split }
}

/// Where one result is stored.
pub(super) struct ResultWriter {
    pub memory: WorkingMemory,
    pub base: EntryKey,
    pub tool: String,
    pub keep: Duration,
    pub saved_by: Option<uuid::Uuid>,
}

impl ResultWriter {
    fn of(namespace: &Namespace, request: &ToolRequest, settings: &Settings, memory: WorkingMemory) -> Self {
        // The first digits of an id are the time; only the last ones are unique. Another attempt of
        // the same request has the same name and overwrites what the first one left.
        let id = request.id.simple().to_string();
        let base = EntryKey::of(namespace, &format!("tool-{}-{}", request.tool, &id[20..]));
        Self { memory, base, tool: request.tool.clone(), keep: settings.keep, saved_by: request.agent_id }
    }

    /// What the caller gets for a result that was written.
    fn index(&self, split: &Split, characters: usize, most: usize) -> Shortened {
        let base = self.base.path();
        let described = json!({"key": base, "chunks": split.parts.len(), "characters": characters});
        let expires_at =
            chrono::Duration::from_std(self.keep).ok().and_then(|keep| Utc::now().checked_add_signed(keep));
        let output = LargeResult {
            marker: LargeResultMarker::LargeResult,
            text: table(&self.tool, &base, split, characters, most, self.keep),
            kind: match split.layout {
                Layout::Text { .. } => LargeResultKind::Text,
                Layout::Json { .. } => LargeResultKind::Json,
            },
            characters,
            truncated: false,
            parts: split.parts.len(),
            part_prefix: Some(chunk_prefix(&base)),
            key: Some(base),
            expires_at: expires_at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)),
        };
        Shortened { output: json!(output), metadata: Map::from_iter([("large_result".into(), described)]) }
    }

    /// Writes the chunks, then the index, so that an index exists only when all chunks do.
    pub async fn write(&self, split: &Split) -> Result<(), StoreError> {
        let mut parts = split.parts.iter().enumerate();
        let mut writing = JoinSet::new();
        let of = self.base.path();
        loop {
            while writing.len() < WRITERS
                && let Some((index, part)) = parts.next()
            {
                let name = chunk_name(self.base.name(), index + 1);
                let entry = self.entry(&name, part.value.clone(), EntryRole::Chunk { of: of.clone() });
                let memory = self.memory.clone();
                writing.spawn(async move { save(&memory, &entry).await });
            }
            match writing.join_next().await {
                None => break,
                Some(Ok(saved)) => saved?,
                Some(Err(error)) => return Err(StoreError::Internal(error.to_string())),
            }
        }
        let layout = serde_json::to_value(&split.layout).map_err(|error| StoreError::Internal(error.to_string()))?;
        let value = index(&self.tool, &of, split);
        let entry = self.entry(&index_name(self.base.name()), value, EntryRole::Index { parts: layout });
        save(&self.memory, &entry).await
    }

    fn entry(&self, name: &str, value: Value, role: EntryRole) -> NewEntry {
        NewEntry {
            category: Some("large_result".into()),
            ttl: Some(self.keep),
            saved_by: self.saved_by,
            role,
            ..NewEntry::new(EntryKey::of(self.base.namespace(), name), value)
        }
    }
}

async fn save(memory: &WorkingMemory, entry: &NewEntry) -> Result<(), StoreError> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..ATTEMPTS {
        match memory.save(entry).await {
            Err(error) if error.is_retryable() => {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            done => return done.map(|_| ()),
        }
    }
    memory.save(entry).await.map(|_| ())
}
