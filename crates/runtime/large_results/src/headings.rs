//! The headings of a Markdown text.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::excerpt::{at_most, one_line};

pub(crate) struct Heading {
    /// From 1 to 6.
    pub level: usize,
    pub title: String,
    /// The offset, in bytes.
    pub at: usize,
}

/// The maximum length of a stored title, in characters.
const MAX_TITLE: usize = 100;
/// More headings would not help a reader.
const MAX_HEADINGS: usize = 5_000;

/// In text order, without empty ones.
pub(crate) fn headings(text: &str) -> Vec<Heading> {
    // The same options as the splitter, so that both see the same headings.
    let mut found = Vec::new();
    let mut open: Option<Heading> = None;
    for (event, range) in Parser::new_ext(text, Options::all()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                open = Some(Heading { level: level as usize, title: String::new(), at: range.start });
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some(mut heading) = open.take() {
                    heading.title = at_most(&one_line(&heading.title), MAX_TITLE);
                    if !heading.title.is_empty() {
                        found.push(heading);
                    }
                    if found.len() == MAX_HEADINGS {
                        return found;
                    }
                }
            }
            Event::Text(words) | Event::Code(words) | Event::InlineMath(words) => {
                if let Some(heading) = &mut open {
                    heading.title.push_str(&words);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut open {
                    heading.title.push(' ');
                }
            }
            _ => {}
        }
    }
    found
}
