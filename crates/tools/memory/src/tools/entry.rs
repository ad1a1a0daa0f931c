//! `get_from_working_memory` and `delete_from_working_memory`. Reading returns only the value, so
//! that a chunk of a large result that fits a caller's limit also fits when it is read. The rest is
//! in the metadata.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, NativeTool, ToolCall};
use rcrt_large_results::{EntryKey, Selection, WorkingMemory};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{answer, key, memory};

/// How many existing keys the failure for a missing key lists.
const NAMED: usize = 20;

pub(super) struct Get;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    key: String,
    namespace: Option<String>,
}

#[async_trait]
impl NativeTool for Get {
    fn name(&self) -> &'static str {
        "get_from_working_memory"
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = answer::read(call)?;
        let key = key(call, &input.key, input.namespace.as_deref())?;
        let memory = memory(call);
        let Some(entry) = memory.get(&key).await.map_err(answer::store)? else {
            return Err(missing(&memory, &key).await);
        };
        let mut details = json!({"key": key.path(), "saved_at": entry.saved_at});
        for (name, value) in [("category", entry.category), ("expires_at", entry.expires_at)] {
            if let Some(value) = value {
                details[name] = value.into();
            }
        }
        metadata.insert("memory".into(), details);
        Ok(entry.value)
    }
}

async fn missing(memory: &WorkingMemory, key: &EntryKey) -> ToolFailure {
    let there = memory.page(&Selection::of(key.namespace().clone()), 0).await;
    let keys: Vec<String> = match there {
        Ok(page) => page.entries.iter().take(NAMED).map(|entry| entry.key.path()).collect(),
        Err(error) => return answer::store(error),
    };
    let there = match keys.as_slice() {
        [] => format!("; the namespace {} has no entries", key.namespace()),
        some => format!("; existing keys: {}", some.join(", ")),
    };
    answer::failed(format!("there is no entry {key}, or it has expired{there}")).with_details(json!({"keys": keys}))
}

pub(super) struct Delete;

#[async_trait]
impl InputTool for Delete {
    const NAME: &'static str = "delete_from_working_memory";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let key = key(call, &input.key, input.namespace.as_deref())?;
        let deleted = memory(call).delete(&key).await.map_err(answer::store)?;
        Ok(json!({"key": key.path(), "deleted": deleted}))
    }
}
