//! `web_search`: queries the operator's search engine.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{ToolDefinition, ToolFailure};
use rcrt_egress::{Connections, Egress};
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failures::{failed, invalid};
use crate::http_client::FetchLimits;
use crate::reader_pool::ReaderPool;
use crate::search::{self, SearchContext, SearchProvider, SearchResult, WebSearchQuery};
use crate::settings::Settings;
use crate::text::{line, link_name, link_target};

const MAX_COUNT: u8 = 20;
/// The most characters of a query. Longer queries are cut.
const MAX_QUERY: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    query: String,
    /// Any number; it is clamped to the bounds.
    count: Option<f64>,
}

pub(crate) struct WebSearch {
    gate: Arc<Egress>,
    provider: Option<Arc<dyn SearchProvider>>,
    bounds: FetchLimits,
    default_count: usize,
    reader_pool: Arc<ReaderPool>,
}

fn clamped(count: f64) -> usize {
    (1..=MAX_COUNT).rev().find(|most| f64::from(*most) <= count).map_or(1, usize::from)
}

impl WebSearch {
    pub fn new(gate: Arc<Egress>, settings: &Settings, reader_pool: Arc<ReaderPool>) -> Self {
        let bounds = settings.limits(settings.fetch_bytes);
        let default_count = settings.search_count.clamp(1, usize::from(MAX_COUNT));
        Self { gate, provider: search::provider(settings), bounds, default_count, reader_pool }
    }
}

#[async_trait]
impl NativeTool for WebSearch {
    fn name(&self) -> &'static str {
        "web_search"
    }

    fn missing_requirements(&self) -> Vec<String> {
        if self.provider.is_some() {
            return Vec::new();
        }
        vec![
            "no search engine is chosen; start the runner with --search brave (and the secret BRAVE_API_KEY), or with \
             --search searxng --searxng-url URL"
                .to_owned(),
        ]
    }

    /// Ignores the record: the required secrets depend on the engine.
    fn required_secrets(&self, _definition: &ToolDefinition) -> Vec<String> {
        self.provider.as_ref().map(|provider| provider.required_secrets()).unwrap_or_default()
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = read_input(call)?;
        let count = input.count.map_or(self.default_count, clamped);
        let text: String = line(&input.query, usize::MAX).chars().take(MAX_QUERY).collect();
        if text.is_empty() {
            return Err(invalid("query: is empty; say what to search for"));
        }
        let Some(provider) = &self.provider else {
            return Err(failed(self.missing_requirements().join(" ")));
        };
        let query = WebSearchQuery { text, count };
        let search = SearchContext {
            gate: &self.gate,
            call,
            connections: &Connections::default(),
            bounds: self.bounds,
            reader_pool: &self.reader_pool,
        };
        metadata.insert("provider".into(), provider.name().into());
        let mut hits = provider.search(&search, &query).await?;
        hits.truncate(count);
        Ok(Value::String(shown(&query.text, &hits)))
    }
}

/// The result for the agent.
fn shown(query: &str, hits: &[SearchResult]) -> String {
    if hits.is_empty() {
        return format!("No results for \"{query}\".");
    }
    let count = match hits.len() {
        1 => "1 result".to_owned(),
        count => format!("{count} results"),
    };
    let mut lines = vec![format!("{count} for \"{query}\":\n")];
    for (index, hit) in hits.iter().enumerate() {
        let age = hit.age.as_ref().map(|age| format!("({age})"));
        let about: Vec<String> =
            Some(hit.snippet.clone()).filter(|text| !text.is_empty()).into_iter().chain(age).collect();
        let about = if about.is_empty() { String::new() } else { format!(" — {}", about.join(" ")) };
        lines.push(format!("{}. [{}]({}){about}", index + 1, link_name(&hit.title), link_target(&hit.url)));
    }
    lines.join("\n")
}
