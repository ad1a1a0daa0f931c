//! Writes a tree as text or markdown.

use dom_query::{NodeData, NodeRef};
use url::Url;

use super::element::{holds_a_block, is_block, name_of};
use super::writer::{Gap, Writer};
use crate::reader_pool::ReadDeadline;

/// Deeper nodes are not written. The parser keeps real pages and most others above this depth.
const MAX_DEPTH: usize = 700;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Text, list marks and tables, without links and emphasis.
    Text,
    Markdown,
}

pub(super) struct Rendered {
    pub text: String,
    pub is_cut: bool,
}

pub(super) fn write(root: &NodeRef<'_>, style: Style, base: Option<&Url>, until: &ReadDeadline) -> Rendered {
    let mut writing = Renderer {
        style,
        base,
        until,
        writer: Writer::new(),
        inline: String::new(),
        flat: None,
        block_link: None,
        lists: 0,
        in_link: false,
        is_bold: false,
        is_italic: false,
        steps: 0,
        is_cut: false,
    };
    writing.node(root, 0);
    writing.flush();
    let is_cut = writing.is_cut || writing.writer.is_full();
    Rendered { text: writing.writer.finish(), is_cut }
}

pub(super) struct Renderer<'u> {
    pub style: Style,
    pub base: Option<&'u Url>,
    until: &'u ReadDeadline,
    pub writer: Writer,
    /// The text of the current block.
    pub inline: String,
    /// Blocks are joined into one text with this separator.
    pub flat: Option<char>,
    /// A link around blocks. It is attached to the next block.
    pub block_link: Option<String>,
    /// The number of enclosing lists.
    pub lists: usize,
    pub in_link: bool,
    pub is_bold: bool,
    pub is_italic: bool,
    steps: u32,
    pub is_cut: bool,
}

impl Renderer<'_> {
    pub fn is_markdown(&self) -> bool {
        self.style == Style::Markdown
    }

    pub fn node(&mut self, node: &NodeRef<'_>, depth: usize) {
        self.steps = self.steps.wrapping_add(1);
        if depth > MAX_DEPTH || (self.steps.is_multiple_of(256) && self.until.is_over()) || self.writer.is_full() {
            self.is_cut = true;
        }
        if self.is_cut {
            return;
        }
        if node.is_text() {
            node.query(|inner| {
                if let NodeData::Text { contents } = &inner.data {
                    self.text(contents);
                }
            });
            return;
        }
        let Some(name) = name_of(node) else {
            return self.children(node, depth);
        };
        match &*name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(node, &name, depth),
            "p" | "address" | "center" | "dl" | "fieldset" | "figure" | "hgroup" | "legend" | "caption" => {
                self.spaced(node, depth);
            }
            "pre" | "listing" | "xmp" | "plaintext" => self.preformatted(node),
            "blockquote" => self.quote(node, depth),
            "ul" | "ol" | "menu" | "dir" => self.list(node, &name, depth),
            "li" | "dd" => self.item(node, "- ", depth),
            "dt" | "summary" => self.term(node, depth),
            "table" => self.table(node, depth),
            "td" | "th" => {
                self.text(" ");
                self.children(node, depth);
                self.text(" ");
            }
            "hr" => self.rule(),
            "select" | "textarea" | "rp" => {}
            name if is_block(name) => self.plain_block(node, depth),
            name => self.inline_element(node, name, depth),
        }
    }

    pub fn children(&mut self, node: &NodeRef<'_>, depth: usize) {
        for child in node.children_it(false) {
            self.node(&child, depth + 1);
        }
    }

    /// Ends the current block.
    pub fn flush(&mut self) {
        if let Some(between) = self.flat {
            if !self.inline.ends_with(char::is_whitespace) && !self.inline.is_empty() {
                self.inline.push(between);
            }
            return;
        }
        let text = std::mem::take(&mut self.inline);
        let text = trimmed_lines(&text);
        if text.is_empty() {
            return;
        }
        let text = if self.is_markdown() { escape_line_start(&text) } else { text };
        let text = self.linked(text);
        self.writer.block(&text);
    }

    /// Attaches the link around the block to it.
    pub fn linked(&mut self, text: String) -> String {
        if text.contains("](") {
            return text;
        }
        match self.block_link.take() {
            Some(target) => format!("[{}]({target})", crate::text::link_name(&text.replace('\n', " "))),
            None => text,
        }
    }

    fn plain_block(&mut self, node: &NodeRef<'_>, depth: usize) {
        self.flush();
        self.children(node, depth);
        self.flush();
    }

    fn spaced(&mut self, node: &NodeRef<'_>, depth: usize) {
        self.flush();
        self.writer.want(Gap::Blank);
        self.children(node, depth);
        self.flush();
        self.writer.want(Gap::Blank);
    }

    fn heading(&mut self, node: &NodeRef<'_>, name: &str, depth: usize) {
        self.flush();
        let text = self.gathered(node, ' ', depth);
        if self.flat.is_some() {
            self.inline.push_str(&text);
            return self.flush();
        }
        if text.is_empty() {
            return;
        }
        self.writer.want(Gap::Blank);
        let text = self.linked(text);
        let level = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
        let marks = if self.is_markdown() { "#".repeat(level) + " " } else { String::new() };
        self.writer.block(&(marks + &text));
        self.writer.want(Gap::Blank);
    }

    /// A short block that names the next one.
    fn term(&mut self, node: &NodeRef<'_>, depth: usize) {
        self.flush();
        let text = self.gathered(node, ' ', depth);
        if text.is_empty() {
            return;
        }
        let text = if self.is_markdown() && !text.contains("**") { format!("**{text}**") } else { text };
        if self.flat.is_some() {
            self.inline.push_str(&text);
            return self.flush();
        }
        self.writer.want(Gap::Blank);
        self.writer.block(&text);
    }

    /// All text below the node, with blocks separated by the character.
    pub fn gathered(&mut self, node: &NodeRef<'_>, between: char, depth: usize) -> String {
        let before = std::mem::take(&mut self.inline);
        let flat = self.flat.replace(between);
        self.children(node, depth);
        self.flat = flat;
        let text = std::mem::replace(&mut self.inline, before);
        let text = trimmed_lines(&text);
        if between == ' ' { text.replace('\n', " ") } else { text }
    }

    fn quote(&mut self, node: &NodeRef<'_>, depth: usize) {
        if self.flat.is_some() {
            return self.plain_block(node, depth);
        }
        self.flush();
        self.writer.want(Gap::Blank);
        self.writer.enter("> ", "> ");
        self.children(node, depth);
        self.flush();
        self.writer.leave();
        self.writer.want(Gap::Blank);
    }

    fn rule(&mut self) {
        self.flush();
        if self.flat.is_some() {
            return;
        }
        self.writer.want(Gap::Blank);
        if self.is_markdown() {
            self.writer.block("---");
            self.writer.want(Gap::Blank);
        }
    }

    fn inline_element(&mut self, node: &NodeRef<'_>, name: &str, depth: usize) {
        let can_wrap =
            || !matches!(name, "a" | "b" | "strong" | "i" | "em" | "del" | "s" | "code") || !holds_a_block(node);
        match name {
            "br" => self.line_break(),
            "img" => self.picture(node),
            "input" => self.check_box(node),
            "math" => self.formula(node, depth),
            "a" => self.anchor(node, depth),
            "b" | "strong" if can_wrap() => self.bold(node, depth),
            "i" | "em" | "cite" | "dfn" if can_wrap() => self.italic(node, depth),
            "del" | "s" | "strike" if can_wrap() => self.wrapped(node, "~~", depth),
            "code" | "kbd" | "samp" | "tt" if can_wrap() => self.code(node, depth),
            "q" => self.quoted(node, depth),
            "sup" => self.raised(node, depth),
            "option" | "button" | "label" => {
                self.text(" ");
                self.children(node, depth);
                self.text(" ");
            }
            _ => self.children(node, depth),
        }
    }
}

/// Trims each line, and removes empty lines at both ends.
fn trimmed_lines(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(first, |last| last + 1);
    let mut out = String::with_capacity(text.len());
    let mut was_empty = false;
    for line in &lines[first..last] {
        // Only one empty line in a row remains.
        if line.is_empty() && was_empty {
            continue;
        }
        was_empty = line.is_empty();
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line);
    }
    out
}

/// Escapes text that markdown would read as a mark at the beginning of a line.
fn escape_line_start(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let marks = line.bytes().take_while(|byte| *byte == b'#').count();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let is_rule = line.len() >= 3 && ["-", "=", "_", "*"].iter().any(|mark| line.replace(*mark, "").is_empty());
        let is_mark = (1..=6).contains(&marks) && line[marks..].starts_with(' ')
            || line.starts_with('>')
            || ["- ", "+ ", "* ", "```", "~~~"].iter().any(|mark| line.starts_with(mark))
            || is_rule;
        if is_mark {
            out.push('\\');
            out.push_str(line);
        } else if (1..=9).contains(&digits)
            && line[digits..].starts_with(['.', ')'])
            && line[digits + 1..].starts_with(' ')
        {
            out.push_str(&line[..digits]);
            out.push('\\');
            out.push_str(&line[digits..]);
        } else {
            out.push_str(line);
        }
    }
    out
}
