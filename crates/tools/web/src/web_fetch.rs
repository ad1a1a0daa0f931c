//! `web_fetch`: one GET, as text.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_egress::{Connections, Egress};
use rcrt_executors::builtin::read_input;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::arguments::read_url;
use crate::content::{self, Content, PageScope};
use crate::failures::invalid;
use crate::http_client::{HttpClient, HttpResponse, rules_of};
use crate::reader_pool::ReaderPool;
use crate::settings::Settings;
use crate::text::{cut, line};

const DEFAULT_CHARS: usize = 50_000;
const MAX_CHARS: usize = 1_000_000;

pub(crate) const ACCEPT: &str = "text/html, application/xhtml+xml, application/json, text/*;q=0.9, */*;q=0.5";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    url: String,
    #[serde(rename = "maxChars")]
    max_chars: Option<usize>,
}

pub(crate) struct WebFetch {
    gate: Arc<Egress>,
    settings: Arc<Settings>,
    reader_pool: Arc<ReaderPool>,
}

impl WebFetch {
    pub fn new(gate: Arc<Egress>, settings: Arc<Settings>, reader_pool: Arc<ReaderPool>) -> Self {
        Self { gate, settings, reader_pool }
    }
}

#[async_trait]
impl NativeTool for WebFetch {
    fn name(&self) -> &'static str {
        "web_fetch"
    }

    async fn run(&self, call: &ToolCall, metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = read_input(call)?;
        let most = input.max_chars.unwrap_or(DEFAULT_CHARS);
        if !(1..=MAX_CHARS).contains(&most) {
            return Err(invalid(format!("maxChars: is {most}; it must be from 1 to {MAX_CHARS}")));
        }
        let url = read_url(&input.url)?;
        let http = HttpClient {
            gate: &self.gate,
            call,
            rules: &rules_of(call)?,
            connections: &Connections::default(),
            bounds: self.settings.limits(self.settings.fetch_bytes),
            user_agent: Some(&self.settings.user_agent),
        };
        let answer = http.get(&url, &[("accept", ACCEPT)]).await?;
        metadata.insert("http_status".into(), answer.status.into());
        call.progress.report(None, &format!("reading {} bytes", answer.body.len()));
        let most_bytes = self.settings.fetch_bytes;
        let text = self.reader_pool.read(move |until| {
            let content = content::read(&answer, PageScope::Whole, until)?;
            Ok(shown(url.as_str(), &answer, &content, most, most_bytes))
        });
        text.await?.map(Value::String)
    }
}

/// The result for the agent.
fn shown(url: &str, answer: &HttpResponse, content: &Content, most: usize, most_bytes: usize) -> String {
    let (text, total) = cut(&content.page.content, most);
    let mut lines = vec![format!("URL: {url}")];
    if answer.url.as_str() != url {
        lines.push(format!("Final URL: {}", answer.url));
    }
    lines.push(format!("Status: {}", line(&answer.status_line(), 100)));
    lines.push(format!("Content-Type: {}", content.media_type));
    lines.extend(content.page.title.iter().map(|title| format!("Title: {title}")));
    lines.push(format!("Length: {total} characters\n\n--- Content ---\n{text}"));
    if total > most {
        lines.push(format!("\n[content truncated: {most} of {total} characters; increase maxChars for more]"));
    }
    if answer.is_cut {
        lines.push(format!("\n[the page is larger than {most_bytes} bytes; only its beginning was read]"));
    } else if content.page.is_cut {
        lines.push("\n[the page's markup takes too long to read; only its beginning was read]".to_owned());
    }
    lines.join("\n")
}
