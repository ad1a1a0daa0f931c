//! The operator's settings.

use std::time::Duration;

use url::Url;

use crate::http_client::FetchLimits;

/// The search engine of `web_search`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchChoice {
    /// Brave's search API, with the secret `BRAVE_API_KEY`.
    Brave,
    /// A SearXNG of the operator's choice, by its base URL. One inside a private network also needs
    /// `--allow-private-host web_search=HOST:PORT`.
    Searxng(Url),
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// Default: none, and `web_search` waits.
    pub search: Option<SearchChoice>,
    /// The URL of Brave's API. Default `https://api.search.brave.com/`.
    pub brave_api: String,
    /// The URL of GitHub's pages. Default `https://github.com/`.
    pub github: String,
    /// The URL of GitHub's REST API. Default `https://api.github.com/`.
    pub github_api: String,
    /// The most decoded bytes of a page that `web_fetch` reads. Default 2 MiB.
    pub fetch_bytes: usize,
    /// The most decoded bytes of a page that `web_browse` reads. Default 5 MiB.
    pub browse_bytes: usize,
    /// The time limit of one request to its last byte, including redirects. Default 30 seconds.
    pub request_timeout: Duration,
    /// The most redirects of one request. Default 5.
    pub most_redirects: usize,
    /// The time limit for parsing one page. The page is cut at what was parsed by then. Default 10
    /// seconds.
    pub reading_time: Duration,
    /// Pages that are parsed concurrently, each with up to about 100 MB of memory. Default 4.
    pub readers: usize,
    /// Results of a search without a count, 1 to 20. Default 5.
    pub search_count: usize,
    /// The `User-Agent` of `web_fetch` and `web_browse`. Default `rcrt/VERSION`.
    pub user_agent: String,
    /// `web_browse` returns pages with at most this many characters whole. Default 8,000.
    pub chunk_threshold: usize,
    /// The most characters in one chunk of a longer page. Default 4,000.
    pub chunk_chars: usize,
    /// How long the chunks of a page are stored. Default 30 minutes.
    pub chunk_keep: Duration,
    /// The limits of results for callers.
    pub results: rcrt_large_results::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            search: None,
            brave_api: "https://api.search.brave.com/".into(),
            github: "https://github.com/".into(),
            github_api: "https://api.github.com/".into(),
            fetch_bytes: 2 * 1024 * 1024,
            browse_bytes: 5 * 1024 * 1024,
            request_timeout: Duration::from_secs(30),
            most_redirects: 5,
            reading_time: Duration::from_secs(10),
            readers: 4,
            search_count: 5,
            user_agent: concat!("rcrt/", env!("CARGO_PKG_VERSION")).into(),
            chunk_threshold: 8000,
            chunk_chars: 4000,
            chunk_keep: Duration::from_mins(30),
            results: rcrt_large_results::Settings::default(),
        }
    }
}

impl Settings {
    /// The limits of a request for at most this many bytes.
    pub(crate) fn limits(&self, bytes: usize) -> FetchLimits {
        FetchLimits { time: self.request_timeout, bytes, redirects: self.most_redirects }
    }
}
