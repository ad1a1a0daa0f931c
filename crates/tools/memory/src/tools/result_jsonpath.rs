//! `result_jsonpath`: queries a stored JSON document with a JSONPath (RFC 9535).

use std::collections::HashMap;

use async_trait::async_trait;
use rcrt_breadcrumb::{ToolFailure, check_numbers};
use rcrt_executors::{InputTool, ToolCall};
use rcrt_large_results::{JsonPathStep, Namespace, StoredResult, json_chars, leaves_and_containers, written};
use serde::Deserialize;
use serde_json::{Value, json};
use serde_json_path::JsonPath;

use super::{answer, memory};
use crate::jsonpath_cost::Cost;

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;
/// The maximum size of the result, in characters of JSON: matches can be nested.
const MOST_CHARS: usize = 2_000_000;

pub(super) struct ResultJsonpath;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    key: String,
    path: String,
    limit: Option<usize>,
}

#[async_trait]
impl InputTool for ResultJsonpath {
    const NAME: &'static str = "result_jsonpath";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let limit = answer::limit(input.limit, DEFAULT_LIMIT, MAX_LIMIT)?;
        let path = input.path.trim().to_owned();
        let cost = Cost::of(&path).map_err(|wrong| answer::invalid("path", wrong))?;
        let memory = memory(call);
        let home = Namespace::home(&call.request);
        let stored = StoredResult::find(&memory, &input.key, &home).await.map_err(answer::stored)?;
        let stored = stored.ok_or_else(|| answer::no_result(&input.key))?;
        let whole = stored.whole(&memory).await.map_err(answer::stored)?;
        let ask = move || {
            let query = JsonPath::parse(&path).map_err(|error| {
                let position = path.chars().count().min(error.position());
                answer::invalid(
                    "path",
                    format!("is not a valid JSONPath (RFC 9535), from character {position}: {}", error.message()),
                )
            })?;
            let document = document(whole)?;
            cost.allows(&document).map_err(|wrong| answer::invalid("path", wrong))?;
            Ok(asked(&query, &document, &path, limit))
        };
        tokio::task::spawn_blocking(ask)
            .await
            .map_err(|error| answer::failed(format!("the result cannot be queried: {error}")))?
    }
}

/// A tool can return its JSON as text.
fn document(whole: Value) -> Result<Value, ToolFailure> {
    match whole {
        Value::String(text) => {
            let document = serde_json::from_str(&text)
                .map_err(|_| answer::failed("the result is text, not JSON; use result_search or result_slice"))?;
            check_numbers(text.as_bytes()).map_err(|rounded| {
                answer::failed(format!("the result cannot be queried: {rounded}; use result_search or result_slice"))
            })?;
            Ok(document)
        }
        document => Ok(document),
    }
}

fn asked(query: &JsonPath, document: &Value, path: &str, limit: usize) -> Value {
    let found = query.query(document).all();
    let mut shown = Vec::new();
    let mut characters = 0;
    for value in found.iter().take(limit) {
        characters += json_chars(value);
        if characters > MOST_CHARS && !shown.is_empty() {
            break;
        }
        shown.push(*value);
    }
    let paths = paths(document, &shown);
    let matches: Vec<Value> = shown
        .iter()
        .map(|value| json!({"path": paths.get(&address(value)).cloned().unwrap_or_default(), "value": value}))
        .collect();
    let mut output = json!({"path": path, "found": found.len(), "matches": matches});
    if matches.len() < found.len() {
        output["note"] =
            format!("{} more matches are left out; write a narrower path", found.len() - matches.len()).into();
    }
    output
}

/// The path of each of these values in the document that contains them.
fn paths(document: &Value, values: &[&Value]) -> HashMap<usize, String> {
    let mut wanted: HashMap<usize, String> = values.iter().map(|value| (address(value), String::new())).collect();
    leaves_and_containers(document, &mut |path: &[JsonPathStep], value| {
        if let Some(path_of_value) = wanted.get_mut(&address(value)) {
            *path_of_value = written(path);
        }
    });
    wanted
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
