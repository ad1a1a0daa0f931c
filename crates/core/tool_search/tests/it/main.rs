//! The index of tools and services, through its public interface.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod index;
mod labelled;
mod services;

use rcrt_breadcrumb::Registration;
use rcrt_tool_search::{Question, ToolSearch};
use serde_json::{Value, json};
use uuid::Uuid;

/// A tool with these arguments: names and descriptions.
pub fn tool(name: &str, source: &str, description: &str, arguments: &[(&str, &str)]) -> Registration {
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|(name, text)| ((*name).to_owned(), json!({"description": text}))).collect();
    serde_json::from_value(json!({
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": properties},
        "source": source,
        "tool_id": Uuid::new_v4(),
        "tool_version": 1,
    }))
    .unwrap()
}

pub fn search_of(tools: impl IntoIterator<Item = Registration>) -> ToolSearch {
    let mut search = ToolSearch::default();
    for tool in tools {
        assert!(search.insert(tool));
    }
    search
}

pub fn question(text: &str) -> Question {
    Question::new("query", text).unwrap()
}

/// The names of the tools that are found if every tool can be called.
pub fn names(search: &ToolSearch, text: &str) -> Vec<String> {
    search.tools(&question(text), |_| true, 10).into_iter().map(|found| found.name).collect()
}
