//! Brave's web search API.

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::{SearchContext, SearchProvider, SearchResult, WebSearchQuery, hit, readable, unreadable};
use crate::failures::{failed, from_http_status};
use crate::http_client::{HttpResponse, rules_of};
use crate::text::line;

const BRAVE_API_KEY: &str = "BRAVE_API_KEY";
/// The most words of a query that Brave accepts.
const MAX_WORDS: usize = 50;

pub(super) struct Brave {
    base: String,
}

#[derive(Deserialize)]
struct ResponseBody {
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    #[serde(default)]
    results: Vec<Value>,
}

#[derive(Deserialize)]
struct BraveResult {
    #[serde(default)]
    title: String,
    url: String,
    description: Option<String>,
    age: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalError,
}

#[derive(Deserialize)]
struct RefusalError {
    #[serde(default)]
    code: String,
    #[serde(default)]
    detail: String,
}

impl Brave {
    pub fn new(base: String) -> Self {
        Self { base }
    }

    fn url(&self, query: &WebSearchQuery) -> Result<Url, ToolFailure> {
        let base = Url::parse(&self.base).and_then(|base| base.join("res/v1/web/search"));
        let mut url = base.map_err(|error| failed(format!("the address of Brave's API: {error}")))?;
        let words: Vec<&str> = query.text.split(' ').take(MAX_WORDS).collect();
        url.query_pairs_mut()
            .append_pair("q", &words.join(" "))
            .append_pair("count", &query.count.to_string())
            .append_pair("text_decorations", "false")
            .append_pair("result_filter", "web");
        Ok(url)
    }
}

#[async_trait]
impl SearchProvider for Brave {
    fn name(&self) -> &'static str {
        "brave"
    }

    fn required_secrets(&self) -> Vec<String> {
        vec![BRAVE_API_KEY.to_owned()]
    }

    async fn search(
        &self,
        search: &SearchContext<'_>,
        query: &WebSearchQuery,
    ) -> Result<Vec<SearchResult>, ToolFailure> {
        let Some(key) = search.call.secrets.handle(BRAVE_API_KEY) else {
            let message = format!("the secret {BRAVE_API_KEY:?}, the key of Brave's search API, does not exist");
            return Err(ToolFailure::new(ErrorCode::PermissionDenied, message));
        };
        let rules = rules_of(search.call)?;
        let headers = [("accept", "application/json"), ("x-subscription-token", key)];
        let answer = search.get(&rules, &self.url(query)?, &headers).await?;
        if !answer.is_success() {
            return Err(refused(&answer));
        }
        let read = search.reader_pool.read(move |until| {
            let found: ResponseBody =
                serde_json::from_slice(&answer.body).map_err(|error| unreadable("Brave", &error))?;
            let entries: Vec<BraveResult> = readable("Brave", found.web.map(|web| web.results).unwrap_or_default())?;
            let hits = entries.iter().filter_map(|entry| {
                hit(
                    &entry.title,
                    &entry.url,
                    entry.description.as_deref().unwrap_or_default(),
                    entry.age.as_deref(),
                    until,
                )
            });
            Ok(hits.take(20).collect())
        });
        read.await?
    }
}

fn refused(answer: &HttpResponse) -> ToolFailure {
    let said = serde_json::from_slice::<Refusal>(&answer.body).ok().map(|refusal| refusal.error);
    let said = said.map(|error| format!(": {} {}", line(&error.code, 80), line(&error.detail, 300)));
    let message = format!("Brave refused the search with {}{}", answer.status_line(), said.unwrap_or_default());
    let failure = from_http_status(message.trim_end(), answer.status);
    match answer.header("retry-after").or(answer.header("x-ratelimit-reset")) {
        Some(wait) if answer.status == 429 => {
            let details = json!({"http_status": answer.status, "retry_after": line(wait, 40)});
            failure.with_details(details)
        }
        _ => failure,
    }
}
