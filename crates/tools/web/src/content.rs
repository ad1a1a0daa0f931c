//! Converts the bytes of a response to readable text.

use rcrt_breadcrumb::ToolFailure;
use serde_json::json;

use crate::charset::decode;
use crate::failures::failed;
use crate::html::{self, Page};
use crate::http_client::HttpResponse;
use crate::json_text;
use crate::media_type::{Kind, MediaType};
use crate::reader_pool::ReadDeadline;
use crate::text::clean;

/// The most bytes of formatted JSON. Larger JSON stays unformatted.
const MAX_PRETTY: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageScope {
    /// The whole page, as plain text.
    Whole,
    /// Its main content, as markdown.
    Main,
}

#[derive(Debug)]
pub(crate) struct Content {
    /// The media type, for people.
    pub media_type: String,
    pub page: Page,
}

/// Runs in the reader pool. Binary content is refused; the error names its type.
pub(crate) fn read(answer: &HttpResponse, part: PageScope, until: &ReadDeadline) -> Result<Content, ToolFailure> {
    let said = MediaType::read(answer.header("content-type"));
    let kind = said.kind(&answer.body);
    let media_type = said.shown(&answer.body);
    if kind == Kind::Binary && !answer.body.is_empty() {
        let message = format!(
            "{} is binary ({media_type}, {} bytes{}) and cannot be read as text",
            answer.url,
            answer.body.len(),
            if answer.is_cut { " or more" } else { "" }
        );
        let details = json!({"content_type": media_type, "http_status": answer.status});
        return Err(failed(message).with_details(details));
    }
    let text = decode(&answer.body, &said, kind);
    let mut page = match (kind, part) {
        (Kind::Html, PageScope::Whole) => html::readable_text(&text, until),
        (Kind::Html, PageScope::Main) => html::main_content(&text, &answer.url, until),
        (Kind::Json, part) => {
            let shown = json_text::pretty(text.trim_start_matches('\u{feff}'), MAX_PRETTY);
            let content = clean(&shown.unwrap_or(text));
            let content =
                if part == PageScope::Main { format!("```json\n{}\n```", content.trim_end()) } else { content };
            Page { title: None, content, is_cut: false }
        }
        _ => Page { title: None, content: clean(&text), is_cut: false },
    };
    page.is_cut |= answer.is_cut;
    Ok(Content { media_type, page })
}
