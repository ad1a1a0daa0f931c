//! `search_working_memory`: exact words anywhere, and other grammatical forms (plural, past) where
//! the store's index has them.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use rcrt_large_results::{MemoryEntry, Selection, at_most, one_line, text_of};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::{answer, memory, namespace};
use crate::text_search::Terms;

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 50;
/// The maximum number of entries that one search reads.
const MOST_LOOKED_AT: usize = 1_500;
/// The maximum number of matches that are shown per entry.
const SHOWN: usize = 2;

pub(super) struct Search;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    query: String,
    namespace: Option<String>,
    category: Option<String>,
    limit: Option<usize>,
}

struct Match {
    entry: Value,
    terms: usize,
    /// The rank in the store's results, if the store found the entry.
    rank: usize,
    /// The position in the order of saving, the most recent first.
    order: usize,
}

#[async_trait]
impl InputTool for Search {
    const NAME: &'static str = "search_working_memory";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let limit = answer::limit(input.limit, DEFAULT_LIMIT, MAX_LIMIT)?;
        let terms = terms(&input.query)?;
        let selection = Selection {
            category: input.category.map(|category| category.trim().to_owned()),
            ..Selection::of(namespace(call, input.namespace.as_deref())?)
        };
        let memory = memory(call);
        let ranked = memory.ranked(&selection, &input.query, 100).await.map_err(answer::store)?;
        let ranks: HashMap<String, usize> = ranked.into_iter().zip(0..).collect();
        let (mut matches, mut seen, mut offset) = (Vec::new(), HashSet::new(), 0);
        let mut searched = 0;
        let complete = loop {
            let page = memory.page(&selection, offset).await.map_err(answer::store)?;
            for entry in page.entries {
                if !seen.insert(entry.key.clone()) {
                    continue;
                }
                let rank = ranks.get(&entry.key.path()).copied();
                let terms = terms.clone();
                // Searched on a separate thread, because the value can be large.
                let looked = spawn_blocking(move || look(&entry, &terms, rank, searched)).await;
                matches
                    .extend(looked.map_err(|error| answer::failed(format!("an entry cannot be searched: {error}")))?);
                searched += 1;
            }
            match page.next {
                Some(_) if searched >= MOST_LOOKED_AT => break false,
                Some(next) => offset = next,
                None => break true,
            }
        };
        matches.sort_by_key(|found| (usize::MAX - found.terms, found.rank, found.order));
        let found = matches.len();
        let shown: Vec<Value> = matches.into_iter().take(limit).map(|found| found.entry).collect();
        let mut output = json!({"namespace": selection.namespace.as_str(), "found": found, "matches": shown});
        if !complete {
            output["note"] =
                format!("only the {searched} newest entries were searched; name a narrower namespace").into();
        }
        Ok(output)
    }
}

pub(super) fn terms(query: &str) -> Result<Terms, ToolFailure> {
    if query.chars().count() > 1000 || query.contains('\0') {
        return Err(answer::invalid("query", "must have at most 1000 characters, none of them NUL"));
    }
    Terms::read(query)
        .ok_or_else(|| answer::invalid("query", "has no words; write words, or a phrase in double quotes"))
}

fn look(entry: &MemoryEntry, terms: &Terms, rank: Option<usize>, order: usize) -> Option<Match> {
    let text = text_of(&entry.value);
    let label = format!("{} {}\n", entry.key, entry.category.as_deref().unwrap_or_default());
    let count = terms.count_in(&format!("{label}{text}"));
    if count == 0 && rank.is_none() {
        return None;
    }
    let mut matches = terms.matches(&text);
    matches.sort_by_key(|found| usize::MAX - found.terms);
    let mut shown: Vec<String> = matches.into_iter().take(SHOWN).map(|found| found.text).collect();
    if shown.is_empty() {
        shown.push(at_most(&one_line(&at_most(&text, 400)), 100));
    }
    let mut item = json!({"key": entry.key.path(), "terms": count, "text": shown});
    if let Some(category) = &entry.category {
        item["category"] = category.as_str().into();
    }
    Some(Match { entry: item, terms: count, rank: rank.unwrap_or(usize::MAX), order })
}
