//! HTML pages: parsed within limits, stripped of noise, written as text or markdown.
//!
//! This module has no network access. Its whole input may be hostile. It runs in the reader pool.

mod element;
mod inline;
mod lists;
mod main_content;
mod noise;
mod parsing;
mod render;
mod tables;
mod weights;
mod writer;

use dom_query::NodeRef;
use url::Url;

use crate::reader_pool::ReadDeadline;
use crate::text::line;

use element::{attribute, name_of};
use parsing::Parsed;
use render::{Style, write};

/// The most characters of a title.
const MAX_TITLE: usize = 300;

/// The text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub title: Option<String>,
    pub content: String,
    /// The page was cut, because it is too large or takes too long.
    pub is_cut: bool,
}

/// All visible text, as plain text.
pub(crate) fn readable_text(html: &str, until: &ReadDeadline) -> Page {
    let parsed = parsing::parse(html, until);
    let title = title_of(&parsed);
    let root = parsed.document.root();
    noise::strip_hidden(&root);
    let written = write(&root, Style::Text, None, until);
    Page { title, content: written.text, is_cut: parsed.is_cut || written.is_cut }
}

/// The page's main content as markdown, without navigation, sidebars and footers.
pub(crate) fn main_content(html: &str, url: &Url, until: &ReadDeadline) -> Page {
    let parsed = parsing::parse(html, until);
    let title = title_of(&parsed);
    let base = base_of(&parsed, url);
    let root = parsed.document.root();
    noise::strip_hidden(&root);
    let body = main_content::body_of(&root);
    noise::strip(&body, until);
    let chosen = main_content::choose(&body);
    let written = write(&chosen, Style::Markdown, Some(&base), until);
    Page { title, content: written.text, is_cut: parsed.is_cut || written.is_cut }
}

/// A snippet as one line without tags.
pub(crate) fn plain_line(html: &str, most: usize, until: &ReadDeadline) -> String {
    // Leaves room for tags and entities.
    let (start, _) = crate::text::cut(html, most.saturating_mul(8));
    let parsed = parsing::parse(start, until);
    let root = parsed.document.root();
    noise::strip_hidden(&root);
    line(&root.text(), most)
}

fn title_of(parsed: &Parsed) -> Option<String> {
    let root = parsed.document.root();
    let mut heading = None;
    for node in root.descendants_it() {
        let Some(name) = name_of(&node) else { continue };
        match &*name {
            // An SVG image can have titles too.
            "title" if node.parent().is_some_and(|parent| !is_drawing(&parent)) => {
                let title = line(&node.text(), MAX_TITLE);
                if !title.is_empty() {
                    return Some(title);
                }
            }
            "h1" if heading.is_none() => heading = Some(line(&node.text(), MAX_TITLE)),
            _ => {}
        }
    }
    heading.filter(|heading| !heading.is_empty())
}

fn is_drawing(node: &NodeRef<'_>) -> bool {
    name_of(node).is_some_and(|name| &*name != "head" && &*name != "body" && &*name != "html")
        && node.ancestors_it(None).chain([*node]).any(|node| name_of(&node).is_some_and(|name| &*name == "svg"))
}

/// The base URL of the page's links.
fn base_of(parsed: &Parsed, url: &Url) -> Url {
    let root = parsed.document.root();
    let base = root.descendants_it().find(|node| name_of(node).is_some_and(|name| &*name == "base"));
    base.and_then(|base| attribute(&base, "href"))
        .and_then(|href| url.join(href.trim()).ok())
        .filter(|base| matches!(base.scheme(), "http" | "https"))
        .unwrap_or_else(|| url.clone())
}
