//! `list_working_memory`.

use std::collections::HashSet;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use rcrt_large_results::{EntryRole, MemoryEntry, Selection, at_most, one_line, text_of};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{answer, memory, namespace};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;
/// How many characters of a value the preview shows.
const PREVIEW: usize = 100;

pub(super) struct List;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    namespace: Option<String>,
    category: Option<String>,
    #[serde(default = "yes")]
    recursive: bool,
    #[serde(default)]
    include_chunks: bool,
    limit: Option<usize>,
    #[serde(default)]
    offset: u32,
}

fn yes() -> bool {
    true
}

#[async_trait]
impl InputTool for List {
    const NAME: &'static str = "list_working_memory";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let limit = answer::limit(input.limit, DEFAULT_LIMIT, MAX_LIMIT)?;
        let selection = Selection {
            namespace: namespace(call, input.namespace.as_deref())?,
            recursive: input.recursive,
            category: input.category.map(|category| category.trim().to_owned()),
            chunks: input.include_chunks,
        };
        let memory = memory(call);
        let (mut rows, mut seen, mut offset) = (Vec::new(), HashSet::new(), input.offset);
        let more = 'pages: loop {
            let page = memory.page(&selection, offset).await.map_err(answer::store)?;
            for entry in page.entries {
                if rows.len() == limit {
                    break 'pages true;
                }
                if seen.insert(entry.key.clone()) {
                    rows.push(row(&entry));
                }
            }
            match page.next {
                Some(next) => offset = next,
                None => break false,
            }
        };
        let mut output = json!({"namespace": selection.namespace.as_str(), "entries": rows});
        if more {
            output["next_offset"] = (input.offset as usize + limit).into();
        }
        Ok(output)
    }
}

fn row(entry: &MemoryEntry) -> Value {
    let text = text_of(&entry.value);
    let mut row = json!({"key": entry.key.path(), "characters": text.chars().count(), "saved_at": entry.saved_at});
    for (name, value) in [("category", &entry.category), ("expires_at", &entry.expires_at)] {
        if let Some(value) = value {
            row[name] = value.as_str().into();
        }
    }
    row["preview"] = match &entry.role {
        EntryRole::Index { .. } => {
            let field = |name: &str| entry.value.get(name).map(|value| text_of(value).into_owned()).unwrap_or_default();
            format!(
                "the index of a result of {}, {} characters: {}",
                field("tool"),
                field("characters"),
                field("chunk_keys")
            )
        }
        _ => at_most(&one_line(&at_most(&text, 4 * PREVIEW)), PREVIEW),
    }
    .into();
    row
}
