//! `result_slice`: a range of characters of a stored result.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{NativeTool, ToolCall};
use rcrt_large_results::{Layout, Namespace, Settings, StoredResult, WorkingMemory, text_of};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{answer, memory};

/// Room for the last line, which says how to continue.
const NOTICE: usize = 150;

pub(super) struct ResultSlice {
    pub settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    key: String,
    #[serde(default)]
    start: i64,
    length: Option<usize>,
}

#[async_trait]
impl NativeTool for ResultSlice {
    fn name(&self) -> &'static str {
        "result_slice"
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = answer::read(call)?;
        if input.length == Some(0) {
            return Err(answer::invalid("length", "must be at least 1"));
        }
        let memory = memory(call);
        let home = Namespace::home(&call.request);
        let stored = StoredResult::find(&memory, &input.key, &home).await.map_err(answer::stored)?;
        let stored = stored.ok_or_else(|| answer::no_result(&input.key))?;
        let most = self.settings.most_for(self.name(), &call.request);
        let by_default = self.settings.threshold(&call.request).saturating_sub(NOTICE);
        let length = input.length.unwrap_or(by_default).min(most.saturating_sub(NOTICE));
        let slice = slice(&memory, &stored, input.start, length).await?;
        let end = slice.start + slice.text.chars().count();
        metadata.insert("slice".into(), json!({"start": slice.start, "end": end, "characters": slice.of}));
        let mut text = slice.text;
        if end < slice.of {
            text = format!(
                "{text}\n[characters {} to {} of {}; the result continues at start {end}]",
                slice.start,
                end.saturating_sub(1),
                slice.of
            );
        }
        Ok(text.into())
    }
}

struct Slice {
    text: String,
    /// Characters before the slice.
    start: usize,
    /// Characters of the whole result.
    of: usize,
}

async fn slice(memory: &WorkingMemory, stored: &StoredResult, start: i64, length: usize) -> Result<Slice, ToolFailure> {
    if let StoredResult::Whole { layout: Layout::Text { starts, characters }, .. } = stored {
        let start = from(start, *characters)?;
        let end = start.saturating_add(length).min(*characters);
        let mut text = String::new();
        for (index, before) in starts.iter().enumerate() {
            let after = starts.get(index + 1).unwrap_or(characters);
            if *after > start && *before < end {
                let look = stored.chunk(memory, index).await.map_err(answer::stored)?;
                let part = text_of(&look.value);
                let skipped = start.saturating_sub(*before);
                text.extend(part.chars().skip(skipped).take(end - before.max(&start)));
            }
        }
        return Ok(Slice { text, start, of: *characters });
    }
    let whole = stored.whole(memory).await.map_err(answer::stored)?;
    let cut = move || {
        let text = text_of(&whole);
        let of = text.chars().count();
        let start = from(start, of)?;
        Ok(Slice { text: text.chars().skip(start).take(length).collect(), start, of })
    };
    tokio::task::spawn_blocking(cut)
        .await
        .map_err(|error| answer::failed(format!("the result cannot be read: {error}")))?
}

/// A negative start counts from the end.
fn from(start: i64, characters: usize) -> Result<usize, ToolFailure> {
    let distance = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
    let start = if start < 0 { characters.saturating_sub(distance) } else { distance };
    if start >= characters && start > 0 {
        return Err(answer::invalid("start", format!("is past the end: the result has {characters} characters")));
    }
    Ok(start)
}
