//! Search engines behind one trait.

mod brave;
mod searxng;

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_egress::{Connections, Egress, NetRules};
use rcrt_executors::ToolCall;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::failures::failed;
use crate::html::plain_line;
use crate::http_client::{FetchLimits, HttpClient, HttpResponse};
use crate::reader_pool::{ReadDeadline, ReaderPool};
use crate::settings::{SearchChoice, Settings};
use crate::text::line;

/// The most characters of a title and of a snippet.
const MAX_TITLE: usize = 200;
const MAX_SNIPPET: usize = 500;

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSearchQuery {
    /// One line of 1 to 400 characters.
    pub text: String,
    /// The number of results, 1 to 20.
    pub count: usize,
}

/// One result. Its texts are single lines without markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    pub title: String,
    pub url: String,
    pub snippet: String,
    /// When the page was written, in the engine's words.
    pub age: Option<String>,
}

/// What a provider needs for one search of one call.
pub struct SearchContext<'c> {
    pub(crate) gate: &'c Egress,
    pub(crate) call: &'c ToolCall,
    pub(crate) connections: &'c Connections,
    pub(crate) bounds: FetchLimits,
    pub(crate) reader_pool: &'c ReaderPool,
}

impl SearchContext<'_> {
    /// One GET through the gate, to hosts that the rules allow.
    pub(crate) async fn get(
        &self,
        rules: &NetRules,
        url: &Url,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, ToolFailure> {
        let http = HttpClient {
            gate: self.gate,
            call: self.call,
            rules,
            connections: self.connections,
            bounds: self.bounds,
            user_agent: None,
        };
        http.get(url, headers).await
    }
}

/// A search engine.
#[async_trait]
pub trait SearchProvider: Send + Sync + 'static {
    fn name(&self) -> &'static str;

    /// The names of the secrets that it needs.
    fn required_secrets(&self) -> Vec<String>;

    /// Returns the best results first; more than requested are allowed. A refusal of the engine is
    /// a failure; no results are an empty list.
    async fn search(
        &self,
        search: &SearchContext<'_>,
        query: &WebSearchQuery,
    ) -> Result<Vec<SearchResult>, ToolFailure>;
}

/// The operator's choice; `None` without one.
pub(crate) fn provider(settings: &Settings) -> Option<Arc<dyn SearchProvider>> {
    match settings.search.clone()? {
        SearchChoice::Brave => Some(Arc::new(brave::Brave::new(settings.brave_api.clone()))),
        SearchChoice::Searxng(base) => Some(Arc::new(searxng::Searxng::new(base))),
    }
}

/// Returns the valid results. Malformed results are left out; if none is valid, the response is
/// invalid.
fn readable<T: DeserializeOwned>(engine: &str, results: Vec<Value>) -> Result<Vec<T>, ToolFailure> {
    let mut wrong = None;
    let mut entries = Vec::with_capacity(results.len());
    for result in results {
        match T::deserialize(result) {
            Ok(entry) => entries.push(entry),
            Err(error) => wrong = Some(error),
        }
    }
    match wrong {
        Some(error) if entries.is_empty() => Err(unreadable(engine, &error)),
        _ => Ok(entries),
    }
}

fn unreadable(engine: &str, error: &serde_json::Error) -> ToolFailure {
    failed(format!("{engine}'s response cannot be read: {error}")).retryable(true)
}

/// A result from its engine's text, which may contain markup; `None` if it does not link to a web
/// page.
fn hit(title: &str, url: &str, snippet: &str, age: Option<&str>, until: &ReadDeadline) -> Option<SearchResult> {
    let url = Url::parse(url.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let title = plain_line(title, MAX_TITLE, until);
    Some(SearchResult {
        title: if title.is_empty() { url.host_str().unwrap_or_default().to_owned() } else { title },
        url: url.into(),
        snippet: plain_line(snippet, MAX_SNIPPET, until),
        age: age.map(|age| line(age, 60)).filter(|age| !age.is_empty()),
    })
}
