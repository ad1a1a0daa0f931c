//! `web_browse`: the main content of a page as markdown. GitHub's issues and pull requests are read
//! through its API, because their pages show little without scripts.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{StoreError, ToolFailure};
use rcrt_egress::{Connections, Egress};
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use rcrt_large_results::{ChunkedPage, PageLocation, WorkingMemory, truncate};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::arguments::read_url;
use crate::content::{self, PageScope};
use crate::failures::{from_http_status, invalid};
use crate::github::{self, GITHUB_TOKEN, Thread};
use crate::http_client::{HttpClient, rules_of};
use crate::page_name::page_name;
use crate::reader_pool::ReaderPool;
use crate::settings::Settings;
use crate::web_fetch::ACCEPT;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    url: String,
    chunk: Option<usize>,
}

pub(crate) struct WebBrowse {
    gate: Arc<Egress>,
    settings: Arc<Settings>,
    reader_pool: Arc<ReaderPool>,
}

/// A page, ready to be returned.
struct Read {
    title: Option<String>,
    url: Url,
    markdown: String,
    /// Notes for the reader.
    notices: Vec<String>,
}

impl WebBrowse {
    pub fn new(gate: Arc<Egress>, settings: Arc<Settings>, reader_pool: Arc<ReaderPool>) -> Self {
        Self { gate, settings, reader_pool }
    }

    async fn page(
        &self,
        http: &HttpClient<'_>,
        url: &Url,
        metadata: &mut Map<String, Value>,
    ) -> Result<Read, ToolFailure> {
        let mut notices = Vec::new();
        if let Some(thread) = Thread::of(url, &self.settings.github) {
            match github::read(http, &self.reader_pool, &self.settings.github_api, &thread).await {
                Ok(markdown) => {
                    metadata.insert("source".into(), "github_api".into());
                    return Ok(Read { title: None, url: url.clone(), markdown, notices });
                }
                Err(failure) if github::is_worth_the_page(&failure) => {
                    notices
                        .push(format!("GitHub's API could not be read ({}); this is the page itself", failure.message));
                }
                Err(failure) => return Err(failure),
            }
        }
        let answer = http.get(url, &[("accept", ACCEPT)]).await?;
        metadata.insert("http_status".into(), answer.status.into());
        http.call.progress.report(None, &format!("reading {} bytes", answer.body.len()));
        let status = answer.status_line();
        let (is_success, code) = (answer.is_success(), answer.status);
        let (address, most_bytes, is_large) = (answer.url.clone(), self.settings.browse_bytes, answer.is_cut);
        let content = self.reader_pool.read(move |until| content::read(&answer, PageScope::Main, until)).await??;
        if !is_success {
            let (excerpt, _) = crate::text::cut(content.page.content.trim(), 500);
            return Err(from_http_status(format!("{address} responded with {status}: {excerpt}"), code));
        }
        if is_large {
            notices.push(format!("the page is larger than {most_bytes} bytes; only its beginning was read"));
        } else if content.page.is_cut {
            notices.push("the page's markup takes too long to read; only its beginning was read".to_owned());
        }
        Ok(Read { title: content.page.title, url: address, markdown: content.page.content, notices })
    }
}

#[async_trait]
impl NativeTool for WebBrowse {
    fn name(&self) -> &'static str {
        "web_browse"
    }

    fn optional_secrets(&self) -> Vec<String> {
        vec![GITHUB_TOKEN.to_owned()]
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = read_input(call)?;
        if input.chunk == Some(0) {
            return Err(invalid("chunk: is 0; chunks are counted from 1"));
        }
        let url = read_url(&input.url)?;
        let http = HttpClient {
            gate: &self.gate,
            call,
            rules: &rules_of(call)?,
            connections: &Connections::default(),
            bounds: self.settings.limits(self.settings.browse_bytes),
            user_agent: Some(&self.settings.user_agent),
        };
        let page = self.page(&http, &url, metadata).await?;
        let room = self.settings.results.threshold(&call.request);
        // The result must also have room for the lines above the text.
        let threshold = self.settings.chunk_threshold.min(room / 4 * 3);
        let chunk_chars = self.settings.chunk_chars.min(threshold);
        let split = self.reader_pool.read(move |_| {
            let is_long = page.markdown.chars().nth(threshold).is_some();
            let chunks = (is_long || input.chunk.is_some()).then(|| ChunkedPage::split(&page.markdown, chunk_chars));
            (page, chunks)
        });
        let (page, chunks) = split.await?;
        let Some(chunks) = chunks else {
            return Ok(shown(&page, None, page.markdown.trim_matches('\n')).into());
        };
        if let Some(number) = input.chunk {
            let Some(chunk) = chunks.part(number) else {
                return Err(invalid(format!("chunk: is {number}; the page has {}", chunks.parts())));
            };
            let line = format!("Chunk: {number} of {}", chunks.parts());
            return Ok(shown(&page, Some(&line), chunk.trim_matches('\n')).into());
        }
        if let Some(session) = &call.request.session {
            match self.keep(call, session, &page, &chunks).await {
                Ok(kept) => {
                    let head = shown(&page, None, "-").chars().count();
                    let key = kept["key"].as_str().unwrap_or_default();
                    let table = chunks.table(key, self.settings.chunk_keep, room.saturating_sub(head));
                    metadata.insert("large_result".into(), kept);
                    return Ok(shown(&page, None, table.trim_end()).into());
                }
                Err(error) => tracing::warn!(%error, "the chunks of a page cannot be stored; it is truncated"),
            }
        }
        let line = format!(
            "Note: the page has {} chunks; \"chunk\" reads one of them. In a session they are kept in working memory.",
            chunks.parts()
        );
        Ok(shown(&page, Some(&line), &truncate(page.markdown.trim_matches('\n'), threshold)).into())
    }
}

impl WebBrowse {
    async fn keep(
        &self,
        call: &ToolCall,
        session: &str,
        page: &Read,
        chunks: &ChunkedPage,
    ) -> Result<Value, StoreError> {
        let location = PageLocation {
            session,
            name: &page_name(&page.url),
            keep: self.settings.chunk_keep,
            request: &call.request,
            memory: WorkingMemory::of(call),
        };
        call.progress.report(None, &format!("keeping {} chunks", chunks.parts()));
        chunks.keep(location).await
    }
}

/// The result: the page's identity, a line about its chunks, and the text.
fn shown(page: &Read, about_chunks: Option<&str>, text: &str) -> String {
    let mut lines: Vec<String> = page.title.iter().map(|title| format!("Title: {title}")).collect();
    lines.push(format!("URL: {}", page.url));
    lines.extend(page.notices.iter().map(|notice| format!("Note: {notice}")));
    lines.extend(about_chunks.map(str::to_owned));
    let nothing = "[the page has no text that can be read without running scripts]";
    lines.push(format!("\n{}", if text.is_empty() { nothing } else { text }));
    lines.join("\n")
}
