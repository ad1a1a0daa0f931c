//! Requests to GitHub's REST API.

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use super::{GITHUB_TOKEN, Thread};
use crate::failures::{failed, from_http_status};
use crate::http_client::{HttpClient, HttpResponse};
use crate::reader_pool::ReaderPool;
use crate::text::line;

/// The most pages of one list, with up to 100 entries each.
const MAX_PAGES: usize = 5;

pub(super) struct Api<'c> {
    http: &'c HttpClient<'c>,
    reader_pool: &'c ReaderPool,
    /// The repository's URL in the API, without a trailing slash.
    base: Url,
    /// The handle of the token, if there is one.
    authorization: Option<String>,
}

impl<'c> Api<'c> {
    pub fn new(
        http: &'c HttpClient<'c>,
        reader_pool: &'c ReaderPool,
        base: &str,
        thread: &Thread,
    ) -> Result<Self, ToolFailure> {
        let path = format!("repos/{}/{}", thread.owner, thread.repository);
        let base = Url::parse(base).and_then(|base| base.join(&path));
        let base = base.map_err(|error| failed(format!("the address of GitHub's API: {error}")))?;
        let authorization = http.call.secrets.handle(GITHUB_TOKEN).map(|handle| format!("Bearer {handle}"));
        Ok(Self { http, reader_pool, base, authorization })
    }

    /// One record.
    pub async fn one<T: DeserializeOwned + Send + 'static>(&self, path: &str) -> Result<T, ToolFailure> {
        let answer = self.get(path, None).await?;
        self.parsed(answer).await
    }

    /// Returns a list, and whether it has more pages than were read.
    pub async fn all<T: DeserializeOwned + Send + 'static>(&self, path: &str) -> Result<(Vec<T>, bool), ToolFailure> {
        let mut all: Vec<T> = Vec::new();
        for page in 1..=MAX_PAGES {
            let answer = self.get(path, Some(page)).await?;
            let goes_on = answer.header("link").is_some_and(|link| link.contains("rel=\"next\""));
            let entries: Vec<T> = self.parsed(answer).await?;
            let is_empty = entries.is_empty();
            all.extend(entries);
            if !goes_on || is_empty {
                return Ok((all, false));
            }
        }
        Ok((all, true))
    }

    async fn get(&self, path: &str, page: Option<usize>) -> Result<HttpResponse, ToolFailure> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path()));
        if let Some(page) = page {
            url.query_pairs_mut().append_pair("per_page", "100").append_pair("page", &page.to_string());
        }
        let mut headers = vec![("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")];
        headers.extend(self.authorization.as_deref().map(|value| ("authorization", value)));
        let answer = self.http.get(&url, &headers).await?;
        if answer.is_success() { Ok(answer) } else { Err(self.refused(&answer)) }
    }

    async fn parsed<T: DeserializeOwned + Send + 'static>(&self, answer: HttpResponse) -> Result<T, ToolFailure> {
        if answer.is_cut {
            let message = format!("GitHub's response is larger than {} bytes", answer.body.len());
            return Err(ToolFailure::new(ErrorCode::ResourceExhausted, message));
        }
        let read = self.reader_pool.read(move |_| {
            serde_json::from_slice(&answer.body)
                .map_err(|error| failed(format!("GitHub's response cannot be read: {error}")).retryable(true))
        });
        read.await?
    }

    fn refused(&self, answer: &HttpResponse) -> ToolFailure {
        let said = serde_json::from_slice::<Value>(&answer.body).ok();
        let said = said.as_ref().and_then(|said| said.get("message")?.as_str()).map(|said| line(said, 300));
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        let status = answer.status_line();
        let is_spent = answer.status == 429
            || (answer.status == 403
                && (answer.header("x-ratelimit-remaining") == Some("0") || answer.header("retry-after").is_some()));
        if is_spent {
            let hint = if self.authorization.is_some() {
                ""
            } else {
                "; with the secret GITHUB_TOKEN granted to web_browse, the rate limit is much higher"
            };
            let details = json!({
                "http_status": answer.status,
                "retry_after": answer.header("retry-after").map(|wait| line(wait, 40)),
                "rate_limit_reset": answer.header("x-ratelimit-reset").map(|at| line(at, 40)),
            });
            return failed(format!("the rate limit of GitHub's API is reached ({status}){hint}"))
                .with_details(details)
                .retryable(true);
        }
        let message = match answer.status {
            401 => format!("GitHub's API refuses the secret GITHUB_TOKEN ({status}){said}"),
            404 if self.authorization.is_none() => format!(
                "there is no such issue or pull request, or it is private ({status}); the secret GITHUB_TOKEN, \
                 granted to web_browse, would give access to private ones"
            ),
            404 => format!("there is no such issue or pull request, or GITHUB_TOKEN cannot see it ({status})"),
            410 => format!("the issue was deleted ({status}){said}"),
            _ => format!("GitHub's API responded with {status}{said}"),
        };
        from_http_status(message, answer.status)
    }
}
