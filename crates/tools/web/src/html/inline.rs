//! Inline content: text, links, emphasis, code, images.

use dom_query::{NodeData, NodeRef};

use super::element::{attribute, holds_a_block, name_of};
use super::render::Renderer;
use super::writer::Gap;
use crate::text::{line, link_target};

/// The most characters of an image's description.
const MAX_ALT: usize = 300;

impl Renderer<'_> {
    /// Adds text. Runs of white space become one space.
    pub fn text(&mut self, text: &str) {
        for c in text.chars() {
            if c.is_whitespace() {
                if !self.inline.is_empty() && !self.inline.ends_with(char::is_whitespace) {
                    self.inline.push(' ');
                }
            } else if !is_invisible(c) {
                if self.in_link && matches!(c, '[' | ']') {
                    self.inline.push('\\');
                }
                self.inline.push(c);
            }
        }
    }

    pub fn line_break(&mut self) {
        while self.inline.ends_with(' ') {
            self.inline.pop();
        }
        self.inline.push(if self.flat == Some(' ') { ' ' } else { '\n' });
    }

    pub fn anchor(&mut self, node: &NodeRef<'_>, depth: usize) {
        let target = if self.is_markdown() && !self.in_link { self.target(node, "href") } else { None };
        let Some(target) = target else {
            if is_permalink(node) {
                return;
            }
            return self.children(node, depth);
        };
        if self.flat.is_none() && holds_a_block(node) {
            self.flush();
            self.block_link = Some(target);
            self.children(node, depth);
            self.flush();
            self.block_link = None;
            return;
        }
        let start = self.inline.len();
        let flat = self.flat.replace(' ');
        self.in_link = true;
        self.children(node, depth);
        self.in_link = false;
        self.flat = flat;
        self.wrap_from(start, |name| {
            let name = name.replace('\n', " ");
            if name == target { name } else { format!("[{name}]({target})") }
        });
    }

    /// The target of a link, if it is another page.
    fn target(&self, node: &NodeRef<'_>, name: &str) -> Option<String> {
        let href = attribute(node, name)?;
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = self.base?.join(href).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto" | "ftp").then(|| link_target(url.as_str()))
    }

    pub fn bold(&mut self, node: &NodeRef<'_>, depth: usize) {
        if std::mem::replace(&mut self.is_bold, true) {
            return self.children(node, depth);
        }
        self.wrapped(node, "**", depth);
        self.is_bold = false;
    }

    pub fn italic(&mut self, node: &NodeRef<'_>, depth: usize) {
        if std::mem::replace(&mut self.is_italic, true) {
            return self.children(node, depth);
        }
        self.wrapped(node, "*", depth);
        self.is_italic = false;
    }

    pub fn wrapped(&mut self, node: &NodeRef<'_>, mark: &str, depth: usize) {
        let start = self.inline.len();
        self.children(node, depth);
        if self.is_markdown() {
            self.wrap_from(start, |text| format!("{mark}{text}{mark}"));
        }
    }

    pub fn code(&mut self, node: &NodeRef<'_>, depth: usize) {
        let start = self.inline.len();
        self.children(node, depth);
        if self.is_markdown() {
            self.wrap_from(start, |text| {
                if text.starts_with('!') || text.contains("](") {
                    return text.to_owned();
                }
                let fence = "`".repeat(longest_run(text, '`') + 1);
                let room = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
                format!("{fence}{room}{text}{room}{fence}")
            });
        }
    }

    pub fn quoted(&mut self, node: &NodeRef<'_>, depth: usize) {
        self.inline.push('“');
        self.children(node, depth);
        self.inline.push('”');
    }

    /// Marks a superscript, so that an exponent differs from a following number.
    pub fn raised(&mut self, node: &NodeRef<'_>, depth: usize) {
        let start = self.inline.len();
        self.children(node, depth);
        self.wrap_from(start, |text| {
            let is_number = text.chars().count() <= 4 && text.chars().all(|c| c.is_ascii_digit() || "-+−".contains(c));
            let is_letter = text.len() == 1 && text.chars().all(|c| c.is_ascii_alphabetic());
            if is_number || is_letter { format!("^{text}") } else { text.to_owned() }
        });
    }

    /// Rewrites the text since `start`. White space around it stays outside.
    fn wrap_from(&mut self, start: usize, wrap: impl FnOnce(&str) -> String) {
        if self.inline.len() <= start || !self.inline.is_char_boundary(start) {
            return;
        }
        let gathered = self.inline.split_off(start);
        let text = gathered.trim();
        if text.is_empty() {
            self.inline.push_str(&gathered);
            return;
        }
        let before = gathered.len() - gathered.trim_start().len();
        let after = gathered.trim_end().len();
        self.inline.push_str(&gathered[..before]);
        self.inline.push_str(&wrap(text));
        self.inline.push_str(&gathered[after..]);
    }

    pub fn picture(&mut self, node: &NodeRef<'_>) {
        let alt = line(&attribute(node, "alt").unwrap_or_default(), MAX_ALT);
        if alt.is_empty() {
            return;
        }
        if !self.is_markdown() {
            return self.inline.extend(["[image: ", &alt, "]"]);
        }
        let alt = crate::text::link_name(&alt);
        match self.target(node, "src") {
            Some(source) if !self.in_link => self.inline.extend(["![", &alt, "](", &source, ")"]),
            _ => self.inline.push_str(&alt),
        }
    }

    pub fn check_box(&mut self, node: &NodeRef<'_>) {
        if attribute(node, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("checkbox")) && self.lists > 0 {
            let is_checked = attribute(node, "checked").is_some();
            self.inline.push_str(if is_checked { "[x] " } else { "[ ] " });
        }
    }

    pub fn formula(&mut self, node: &NodeRef<'_>, depth: usize) {
        match attribute(node, "alttext") {
            Some(formula) => self.text(&formula),
            None => self.children(node, depth),
        }
    }

    pub fn preformatted(&mut self, node: &NodeRef<'_>) {
        self.flush();
        let mut code = String::new();
        for below in node.descendants_it() {
            below.query(|inner| match &inner.data {
                NodeData::Text { contents } => code.push_str(contents),
                NodeData::Element(element) if &*element.name.local == "br" => code.push('\n'),
                _ => {}
            });
        }
        let code = crate::text::clean(&code);
        let code = code.trim_end().trim_start_matches('\n');
        if code.is_empty() {
            return;
        }
        if self.flat.is_some() {
            self.inline.push_str(&line(code, usize::MAX));
            return self.flush();
        }
        self.writer.want(Gap::Blank);
        if self.is_markdown() {
            let fence = "`".repeat(longest_run(code, '`').max(2) + 1);
            self.writer.block(&format!("{fence}{}\n{code}\n{fence}", language_of(node)));
        } else {
            self.writer.block(code);
        }
        self.writer.want(Gap::Blank);
    }
}

/// Invisible characters.
fn is_invisible(c: char) -> bool {
    c.is_control() || matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// The permalink mark beside a heading.
fn is_permalink(node: &NodeRef<'_>) -> bool {
    attribute(node, "href").is_some_and(|href| href.starts_with('#'))
        && matches!(node.text().trim(), "¶" | "#" | "§" | "^" | "↑" | "🔗" | "")
}

fn longest_run(text: &str, of: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == of { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// `language-rust`, `lang-rust`, `highlight-source-rust`, on the block, within it or around it.
fn language_of(node: &NodeRef<'_>) -> String {
    let within = node.children_it(false).find(|child| name_of(child).is_some_and(|name| &*name == "code"));
    let around = node.ancestors_it(Some(2));
    let classes = [*node].into_iter().chain(within).chain(around).filter_map(|node| attribute(&node, "class"));
    for class in classes {
        for word in class.split_ascii_whitespace() {
            let named = ["language-", "lang-", "highlight-source-", "highlight-"]
                .iter()
                .find_map(|prefix| word.strip_prefix(prefix));
            let is_name = |name: &&str| {
                !name.is_empty()
                    && name.len() <= 20
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || "+#-_".contains(c))
            };
            if let Some(language) = named.filter(is_name) {
                return language.to_ascii_lowercase();
            }
        }
    }
    String::new()
}
