//! Nested lists.

use dom_query::NodeRef;

use super::element::{attribute, name_of};
use super::render::Renderer;
use super::writer::Gap;

impl Renderer<'_> {
    pub fn list(&mut self, node: &NodeRef<'_>, name: &str, depth: usize) {
        self.flush();
        let distance = if self.lists > 0 { Gap::Line } else { Gap::Blank };
        self.writer.want(distance);
        self.lists += 1;
        let start = attribute(node, "start").and_then(|text| text.trim().parse::<i64>().ok());
        let mut number = start.unwrap_or(1);
        for child in node.children_it(false) {
            if name_of(&child).is_none_or(|name| &*name != "li") {
                self.node(&child, depth + 1);
                continue;
            }
            if name == "ol" {
                let own = attribute(&child, "value").and_then(|text| text.trim().parse::<i64>().ok());
                number = own.unwrap_or(number);
                self.item(&child, &format!("{number}. "), depth + 1);
                number = number.saturating_add(1);
            } else {
                self.item(&child, "- ", depth + 1);
            }
        }
        self.lists -= 1;
        self.flush();
        self.writer.want(distance);
    }

    pub fn item(&mut self, node: &NodeRef<'_>, mark: &str, depth: usize) {
        self.flush();
        if self.flat.is_some() {
            self.inline.push_str(mark);
            self.children(node, depth);
            return self.flush();
        }
        // The first item keeps the distance to the text before the list.
        if node.prev_element_sibling().is_some() {
            self.writer.tighten();
        }
        self.lists += 1;
        self.writer.enter(mark, " ".repeat(mark.len()));
        self.children(node, depth);
        self.flush();
        self.writer.leave();
        self.lists -= 1;
    }
}
