//! `result_search`: finds words in a stored result.

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use rcrt_large_results::{
    JsonPathStep, Namespace, ResultChunk, Settings, StoredResult, json_chars, leaves, text_of, written,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::search::terms;
use super::{answer, memory};
use crate::text_search::{TermMatch, Terms};

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 50;

pub(super) struct ResultSearch {
    pub settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    key: String,
    query: String,
    limit: Option<usize>,
}

/// One match.
struct Hit {
    term_match: TermMatch,
    chunk: Option<usize>,
    path: Option<String>,
}

/// The best matches so far: those with the most terms, in text order.
struct Best {
    limit: usize,
    found: usize,
    hits: Vec<Hit>,
}

impl Best {
    fn add(&mut self, hit: Hit) {
        self.found += 1;
        self.hits.push(hit);
        if self.hits.len() > 2_000 {
            self.keep();
        }
    }

    fn keep(&mut self) {
        self.hits.sort_by_key(|hit| usize::MAX - hit.term_match.terms);
        self.hits.truncate(self.limit);
    }
}

#[async_trait]
impl InputTool for ResultSearch {
    const NAME: &'static str = "result_search";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let limit = answer::limit(input.limit, DEFAULT_LIMIT, MAX_LIMIT)?;
        let terms = terms(&input.query)?;
        let memory = memory(call);
        let home = Namespace::home(&call.request);
        let stored = StoredResult::find(&memory, &input.key, &home).await.map_err(answer::stored)?;
        let stored = stored.ok_or_else(|| answer::no_result(&input.key))?;
        let mut best = Best { limit, found: 0, hits: Vec::new() };
        for index in 0..stored.count() {
            let look = stored.chunk(&memory, index).await.map_err(answer::stored)?;
            let terms = terms.clone();
            // Searched on a separate thread, because the chunk can be large.
            let searched = spawn_blocking(move || {
                search(&look, &terms, &mut best);
                best
            });
            best = searched.await.map_err(|error| answer::failed(format!("the result cannot be searched: {error}")))?;
        }
        best.keep();
        let shown = best.hits.iter().map(|hit| match_json(hit, &stored, &terms));
        let output = json!({"key": input.key, "found": best.found, "matches": []});
        Ok(filled(output, shown, self.settings.threshold(&call.request)))
    }
}

/// The matches that fit into this many characters, at least one.
fn filled(mut output: Value, matches: impl Iterator<Item = Value>, most: usize) -> Value {
    let mut characters = json_chars(&output);
    let mut shown: Vec<Value> = Vec::new();
    for found in matches {
        characters += json_chars(&found) + usize::from(!shown.is_empty());
        if characters > most && !shown.is_empty() {
            break;
        }
        shown.push(found);
    }
    output["matches"] = shown.into();
    output
}

fn search(look: &ResultChunk, terms: &Terms, best: &mut Best) {
    match (&look.value, &look.begin) {
        (Value::String(text), _) => {
            for mut term_match in terms.matches(text) {
                term_match.at += look.start;
                best.add(Hit { term_match, chunk: look.number, path: None });
            }
        }
        (document, begin) => leaves(begin.as_ref(), document, &mut |path, leaf| {
            let name = path.iter().rev().find_map(|step| match step {
                JsonPathStep::Key(key) => Some(key.as_str()),
                JsonPathStep::Index(_) => None,
            });
            let text = format!("{}: {}", name.unwrap_or("$"), text_of(leaf));
            for term_match in terms.matches(&text) {
                best.add(Hit { term_match, chunk: look.number, path: Some(written(path)) });
            }
        }),
    }
}

fn match_json(hit: &Hit, stored: &StoredResult, terms: &Terms) -> Value {
    let mut match_json = json!({});
    if let Some(chunk) = hit.chunk {
        match_json["chunk"] = chunk.into();
    }
    match &hit.path {
        Some(path) => match_json["path"] = path.as_str().into(),
        None => {
            match_json["start"] = hit.term_match.at.into();
            if let Some(section) = stored.section_at(hit.term_match.at) {
                match_json["section"] = section.into();
            }
        }
    }
    if terms.len() > 1 {
        match_json["terms"] = format!("{} of {}", hit.term_match.terms, terms.len()).into();
    }
    match_json["text"] = hit.term_match.text.as_str().into();
    match_json
}
