//! SearXNG, which queries many engines and needs no key.

use std::collections::HashSet;

use async_trait::async_trait;
use rcrt_breadcrumb::{Host, ToolFailure};
use rcrt_egress::NetRules;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{SearchContext, SearchProvider, SearchResult, WebSearchQuery, hit, readable, unreadable};
use crate::failures::{failed, from_http_status};
use crate::text::line;

/// The most pages that are requested to get enough results.
const MAX_PAGES: usize = 3;

pub(super) struct Searxng {
    base: Url,
}

#[derive(Deserialize)]
struct ResponseBody {
    #[serde(default)]
    results: Vec<Value>,
    /// Pairs of an engine's name and its error.
    #[serde(default)]
    unresponsive_engines: Value,
}

#[derive(Deserialize)]
struct SearxngResult {
    title: Option<String>,
    url: Option<String>,
    content: Option<String>,
    #[serde(default, rename = "publishedDate")]
    published: Option<String>,
}

/// One page of results.
struct Page {
    hits: Vec<SearchResult>,
    silent: Vec<String>,
}

impl Searxng {
    pub fn new(base: Url) -> Self {
        Self { base }
    }

    /// The operator's setting is the permission: requests go to that host only.
    fn rules(&self) -> Result<NetRules, ToolFailure> {
        let host = Host::of(&self.base).zip(self.base.port_or_known_default());
        let (host, port) = host.ok_or_else(|| failed("the SearXNG URL has no host"))?;
        Ok(NetRules::only(host, port))
    }

    fn url(&self, query: &WebSearchQuery, page: usize) -> Url {
        let mut url = self.base.clone();
        let path = format!("{}/search", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url.set_query(None);
        url.query_pairs_mut()
            .append_pair("q", &query.text)
            .append_pair("format", "json")
            .append_pair("pageno", &page.to_string());
        url
    }

    async fn page(&self, search: &SearchContext<'_>, query: &WebSearchQuery, page: usize) -> Result<Page, ToolFailure> {
        let answer = search.get(&self.rules()?, &self.url(query, page), &[("accept", "application/json")]).await?;
        if answer.status == 403 {
            let message =
                "the SearXNG instance refuses with 403 Forbidden: its settings.yml must list json under search.formats";
            return Err(from_http_status(message, 403));
        }
        if !answer.is_success() {
            return Err(from_http_status(
                format!("the SearXNG instance refused the search with {}", answer.status_line()),
                answer.status,
            ));
        }
        let read = search.reader_pool.read(move |until| {
            let found: ResponseBody =
                serde_json::from_slice(&answer.body).map_err(|error| unreadable("the SearXNG instance", &error))?;
            let entries: Vec<SearxngResult> = readable("the SearXNG instance", found.results)?;
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let hits = entries.iter().take(100).filter_map(|entry| {
                hit(&text(&entry.title), &text(&entry.url), &text(&entry.content), entry.published.as_deref(), until)
            });
            let engines = found.unresponsive_engines.as_array().map(Vec::as_slice).unwrap_or_default();
            let silent = engines.iter().take(10).filter_map(|engine| {
                let words: Vec<&str> = engine.as_array()?.iter().filter_map(Value::as_str).collect();
                Some(line(&words.join(": "), 80))
            });
            Ok(Page { hits: hits.collect(), silent: silent.collect() })
        });
        read.await?
    }
}

#[async_trait]
impl SearchProvider for Searxng {
    fn name(&self) -> &'static str {
        "searxng"
    }

    fn required_secrets(&self) -> Vec<String> {
        Vec::new()
    }

    async fn search(
        &self,
        search: &SearchContext<'_>,
        query: &WebSearchQuery,
    ) -> Result<Vec<SearchResult>, ToolFailure> {
        let mut hits: Vec<SearchResult> = Vec::new();
        let mut seen = HashSet::new();
        for page in 1..=MAX_PAGES {
            let found = match self.page(search, query, page).await {
                Ok(found) => found,
                // Partial results are better than none.
                Err(_) if !hits.is_empty() => break,
                Err(failure) => return Err(failure),
            };
            let before = hits.len();
            hits.extend(found.hits.into_iter().filter(|hit| seen.insert(hit.url.clone())));
            if hits.is_empty() && !found.silent.is_empty() {
                let message = format!("no engine of the SearXNG instance responded: {}", found.silent.join("; "));
                return Err(failed(message).retryable(true));
            }
            if hits.len() >= query.count || hits.len() == before {
                break;
            }
        }
        Ok(hits)
    }
}
