//! Parses HTML to a tree, by the HTML standard, with limits that the standard does not have: on
//! depth, on the number of nodes, on time. Without them a page of two megabytes can need minutes of
//! work or gigabytes of memory: tags nested a million deep, formatting that every paragraph
//! reopens, one tag with half a million attributes.

use std::cell::Cell;

use dom_query::{Document, LocalName, NodeId};
use html5ever::TokenizerResult;
use html5ever::buffer_queue::BufferQueue;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{Tracer, TreeBuilder, TreeBuilderOpts};

use crate::reader_pool::ReadDeadline;

/// The most elements that are open at the same time.
const MAX_OPEN: usize = 250;
/// The most nodes in the tree. The largest real pages have about 100,000.
const MAX_NODES: usize = 200_000;
/// Bytes between two checks of the clock.
const PIECE: usize = 4096;
/// The most bytes of an attribute's value.
const MAX_VALUE: usize = 4096;

/// The attributes that later steps read.
const KEPT_ATTRIBUTES: &[&str] = &[
    "alt",
    "alttext",
    "aria-hidden",
    "aria-label",
    "checked",
    "class",
    "colspan",
    "content",
    "datetime",
    "hidden",
    "href",
    "id",
    "lang",
    "name",
    "property",
    "role",
    "rowspan",
    "src",
    "start",
    "style",
    "title",
    "type",
    "value",
];

pub(super) struct Parsed {
    pub document: Document,
    pub is_cut: bool,
}

pub(super) fn parse(html: &str, until: &ReadDeadline) -> Parsed {
    let options = TreeBuilderOpts { scripting_enabled: false, drop_doctype: true, ..TreeBuilderOpts::default() };
    let builder = TreeBuilder::new(Document::default(), options);
    let guard = Guard { builder, open: Cell::new(0), is_full: Cell::new(false) };
    let tokenizer = Tokenizer::new(guard, TokenizerOpts::default());
    let queue = BufferQueue::default();
    let (mut rest, mut is_cut) = (html, false);
    while !rest.is_empty() {
        if until.is_over() || tokenizer.sink.is_full.get() {
            is_cut = true;
            break;
        }
        let (piece, after) = rest.split_at(piece_end(rest));
        queue.push_back(piece.into());
        // Scripts are not run: the tokenizer continues after them.
        while !matches!(tokenizer.feed(&queue), TokenizerResult::Done) {}
        tokenizer.sink.builder.sink.errors.borrow_mut().clear();
        rest = after;
    }
    tokenizer.end();
    is_cut |= tokenizer.sink.is_full.get();
    Parsed { document: tokenizer.sink.builder.sink, is_cut }
}

fn piece_end(text: &str) -> usize {
    let mut end = text.len().min(PIECE);
    while !text.is_char_boundary(end) {
        end += 1;
    }
    end
}

/// Enforces limits between the tokenizer and the tree builder.
struct Guard {
    builder: TreeBuilder<NodeId, Document>,
    /// An upper bound on the number of open elements.
    open: Cell<usize>,
    is_full: Cell<bool>,
}

impl TokenSink for Guard {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<NodeId> {
        if self.is_full.get() {
            return TokenSinkResult::Continue;
        }
        let token = match token {
            Token::CommentToken(_) | Token::ParseError(_) => return TokenSinkResult::Continue,
            Token::TagToken(tag) => match self.admitted(tag) {
                Some(tag) => Token::TagToken(tag),
                None => return TokenSinkResult::Continue,
            },
            other => other,
        };
        let result = self.builder.process_token(token, line);
        if self.builder.sink.tree.len() > MAX_NODES {
            self.is_full.set(true);
            // The rest of a raw element is never read.
            return TokenSinkResult::Continue;
        }
        match result {
            TokenSinkResult::EncodingIndicator(_) => TokenSinkResult::Continue,
            other => other,
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl Guard {
    /// The tag for the tree; `None` if it would be too deep.
    fn admitted(&self, mut tag: Tag) -> Option<Tag> {
        // Their contents are outside of the tree, or replace the body's.
        match &*tag.name {
            "template" => tag.name = LocalName::from("x-template"),
            "frameset" => return None,
            _ => {}
        }
        if tag.kind == TagKind::EndTag {
            return Some(tag);
        }
        if !is_raw(&tag.name) {
            if self.open.get() >= MAX_OPEN {
                self.open.set(self.counted());
            }
            if self.open.get() >= MAX_OPEN {
                return None;
            }
            self.open.set(self.open.get() + 1);
        }
        let is_formatting = is_formatting(&tag.name);
        tag.attrs.retain(|attribute| {
            let name = &*attribute.name.local;
            // Without attributes, the standard reopens at most three elements of a kind.
            let is_kept = if is_formatting {
                name == "class" && is_language(&attribute.value)
            } else {
                KEPT_ATTRIBUTES.contains(&name)
            };
            is_kept && attribute.value.len() <= MAX_VALUE
        });
        Some(tag)
    }

    /// Counts what the tree builder holds: open elements, and formatting that it may reopen.
    fn counted(&self) -> usize {
        let count = Count(Cell::new(0));
        self.builder.trace_handles(&count);
        count.0.get()
    }
}

struct Count(Cell<usize>);

impl Tracer for Count {
    type Handle = NodeId;

    fn trace_handle(&self, _node: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}

/// Elements whose contents are text up to the end tag, without child elements.
fn is_raw(name: &str) -> bool {
    matches!(name, "script" | "style" | "textarea" | "title" | "xmp" | "iframe" | "noembed" | "noframes" | "plaintext")
}

fn is_formatting(name: &str) -> bool {
    matches!(
        name,
        "b" | "big" | "code" | "em" | "font" | "i" | "nobr" | "s" | "small" | "strike" | "strong" | "tt" | "u"
    )
}

/// Whether a class names a programming language, as syntax highlighters write it.
fn is_language(class: &str) -> bool {
    class.len() <= 40 && ["language-", "lang-"].iter().any(|prefix| class.starts_with(prefix))
}
