//! `save_to_working_memory`.

use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use rcrt_large_results::{EntryRole, NewEntry};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{answer, key, memory};

/// One year.
const MAX_TTL_SECONDS: u64 = 365 * 24 * 60 * 60;
const MAX_CATEGORY_CHARS: usize = 100;

pub(super) struct Save;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    key: String,
    value: Value,
    namespace: Option<String>,
    category: Option<String>,
    ttl_seconds: Option<u64>,
}

#[async_trait]
impl InputTool for Save {
    const NAME: &'static str = "save_to_working_memory";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let key = key(call, &input.key, input.namespace.as_deref())?;
        let entry = NewEntry {
            key,
            value: input.value,
            category: category(input.category)?,
            ttl: ttl(input.ttl_seconds)?,
            saved_by: call.request.agent_id,
            role: EntryRole::Plain,
        };
        let saved = memory(call).save(&entry).await.map_err(answer::store)?;
        let mut output = json!({"key": entry.key.path(), "replaced": saved.replaced});
        if let Some(at) = saved.expires_at {
            output["expires_at"] = at.into();
        }
        Ok(output)
    }
}

fn category(category: Option<String>) -> Result<Option<String>, ToolFailure> {
    let Some(category) = category else { return Ok(None) };
    let category = category.trim().to_owned();
    if category.is_empty() || category.chars().count() > MAX_CATEGORY_CHARS || category.chars().any(char::is_control) {
        let right = format!("must have 1 to {MAX_CATEGORY_CHARS} characters on one line");
        return Err(answer::invalid("category", right));
    }
    Ok(Some(category))
}

fn ttl(seconds: Option<u64>) -> Result<Option<Duration>, ToolFailure> {
    match seconds {
        None => Ok(None),
        Some(seconds @ 1..=MAX_TTL_SECONDS) => Ok(Some(Duration::from_secs(seconds))),
        Some(_) => Err(answer::invalid("ttl_seconds", format!("must be from 1 to {MAX_TTL_SECONDS}"))),
    }
}
