//! What an operator may set.

use std::time::Duration;

use url::Url;

/// Who answers `web_search`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchChoice {
    /// Brave's search API, with the secret `BRAVE_API_KEY`.
    Brave,
    /// A SearXNG of the operator's choice, by its base URL. One inside the own network also needs
    /// `--allow-private-host web_search=HOST:PORT`.
    Searxng(Url),
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// Default: nobody, and `web_search` waits.
    pub search: Option<SearchChoice>,
    /// Where Brave's API is. Default `https://api.search.brave.com/`.
    pub brave_api: String,
    /// Where GitHub's pages are. Default `https://github.com/`.
    pub github: String,
    /// Where its REST API is. Default `https://api.github.com/`.
    pub github_api: String,
    /// Bytes of a page, decoded, that `web_fetch` reads. Default 2 MiB.
    pub fetch_bytes: usize,
    /// Bytes of a page, decoded, that `web_browse` reads. Default 5 MiB.
    pub browse_bytes: usize,
    /// One request from its start to the last byte, redirects included. Default 30 seconds.
    pub request_timeout: Duration,
    /// Redirects of one request. Default 5.
    pub most_redirects: usize,
    /// For the reading of one page once it is here. What was read by then is the page. Default 10 seconds.
    pub reading_time: Duration,
    /// Pages that are read at the same time, each with up to some 100 MB of memory. Default 4.
    pub readers: usize,
    /// Results of a search that says no count, 1 to 20. Default 5.
    pub search_count: usize,
    /// The `User-Agent` of `web_fetch` and `web_browse`. Default `rcrt/VERSION`.
    pub user_agent: String,
    /// `web_browse` hands over pages of at most so many characters whole. Default 8,000.
    pub chunk_threshold: usize,
    /// Characters of one chunk of a longer page, at most. Default 4,000.
    pub chunk_chars: usize,
    /// How long the chunks of a page are kept. Default 30 minutes.
    pub chunk_keep: Duration,
    /// How much a caller takes at once.
    pub results: memory::large_result::Settings,
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
            results: memory::large_result::Settings::default(),
        }
    }
}
