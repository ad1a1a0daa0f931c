//! `web_browse`: what a page is about, as markdown. GitHub's issues and pull requests are asked of its API: their
//! pages show little without scripts.

use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::ToolFailure;
use executors::egress::{Connections, Egress};
use executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::arguments::{read, read_url};
use crate::chunks::{outline, split};
use crate::content::{self, Part};
use crate::failures::{invalid, of_status};
use crate::fetching::{Bounds, Way, rules_of};
use crate::github::{self, GITHUB_TOKEN, Thread};
use crate::settings::Settings;
use crate::web_fetch::ACCEPT;
use crate::workshop::Workshop;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    url: String,
    chunk: Option<usize>,
}

pub(crate) struct WebBrowse {
    gate: Arc<Egress>,
    settings: Arc<Settings>,
    workshop: Arc<Workshop>,
}

/// A page, ready to be shown.
struct Read {
    title: Option<String>,
    url: Url,
    markdown: String,
    /// What the reader must know of it.
    notices: Vec<String>,
}

impl WebBrowse {
    pub fn new(gate: Arc<Egress>, settings: Arc<Settings>, workshop: Arc<Workshop>) -> Self {
        Self { gate, settings, workshop }
    }

    async fn page(&self, way: &Way<'_>, url: &Url, metadata: &mut Map<String, Value>) -> Result<Read, ToolFailure> {
        let mut notices = Vec::new();
        if let Some(thread) = Thread::of(url, &self.settings.github) {
            match github::read(way, &self.workshop, &self.settings.github_api, &thread).await {
                Ok(markdown) => {
                    metadata.insert("source".into(), "github_api".into());
                    return Ok(Read { title: None, url: url.clone(), markdown, notices });
                }
                Err(failure) if github::is_worth_the_page(&failure) => {
                    notices.push(format!("GitHub's API gave nothing ({}); this is the page itself", failure.message));
                }
                Err(failure) => return Err(failure),
            }
        }
        let answer = way.get(url, &[("accept", ACCEPT)]).await?;
        metadata.insert("http_status".into(), answer.status.into());
        way.call.progress.report(None, &format!("reading {} bytes", answer.body.len()));
        let status = answer.status_line();
        let (is_success, code) = (answer.is_success(), answer.status);
        let (address, most_bytes, is_large) = (answer.url.clone(), self.settings.browse_bytes, answer.is_cut);
        let content = self.workshop.read(move |until| content::read(&answer, Part::Main, until)).await??;
        if !is_success {
            let (excerpt, _) = crate::text::cut(content.page.content.trim(), 500);
            return Err(of_status(format!("{address} answered {status}: {excerpt}"), code));
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
        let input: Input = read(&call.input)?;
        if input.chunk == Some(0) {
            return Err(invalid("chunk: is 0; chunks are counted from 1"));
        }
        let url = read_url(&input.url)?;
        let way = Way {
            gate: &self.gate,
            call,
            rules: &rules_of(call)?,
            connections: &Connections::default(),
            bounds: Bounds {
                time: self.settings.request_timeout,
                bytes: self.settings.browse_bytes,
                redirects: self.settings.most_redirects,
            },
        };
        let page = self.page(&way, &url, metadata).await?;
        let asked = u64_to_usize(call.request.max_result_chars);
        let most = self.settings.chunk_chars.min(asked.map_or(usize::MAX, |asked| asked / 4 * 3));
        // In a session the runner keeps a long result whole, in chunks that can be searched.
        let is_whole = input.chunk.is_none() && call.request.session.is_some();
        let shown = self.workshop.read(move |_| show(&page, input.chunk, if is_whole { usize::MAX } else { most }));
        shown.await?.map(Value::String)
    }
}

fn u64_to_usize(number: Option<u64>) -> Option<usize> {
    number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// What the agent reads: all of it, or one chunk with the outline of all.
fn show(page: &Read, wanted: Option<usize>, most: usize) -> Result<String, ToolFailure> {
    let chunks = split(&page.markdown, most);
    let number = wanted.unwrap_or(1);
    let Some(chunk) = chunks.get(number - 1) else {
        return Err(invalid(format!("chunk: is {number}; the page has {}", chunks.len())));
    };
    let mut lines: Vec<String> = page.title.iter().map(|title| format!("Title: {title}")).collect();
    lines.push(format!("URL: {}", page.url));
    lines.extend(page.notices.iter().map(|notice| format!("Note: {notice}")));
    if chunks.len() > 1 {
        lines.push(format!("Chunk: {number} of {}; \"chunk\" asks for another", chunks.len()));
        if number == 1 {
            lines.push(format!("\nOutline:\n{}\n\n---", outline(&chunks, most / 8)));
        }
    }
    let text = chunk.trim_matches('\n');
    let nothing = "[the page has no text that can be read without running scripts]";
    lines.push(format!("\n{}", if text.is_empty() { nothing } else { text }));
    Ok(lines.join("\n"))
}
