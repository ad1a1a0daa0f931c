//! Queries on one element.

use dom_query::{LocalName, NodeRef};

pub(super) fn name_of(node: &NodeRef<'_>) -> Option<LocalName> {
    node.qual_name_ref().map(|name| name.local.clone())
}

pub(super) fn attribute(node: &NodeRef<'_>, name: &str) -> Option<String> {
    node.element_ref()?.attr_ref(LocalName::from(name)).map(str::to_owned)
}

/// A whole number from 1 to `most`; 1 if absent or invalid.
pub(super) fn count(node: &NodeRef<'_>, name: &str, most: usize) -> usize {
    attribute(node, name).and_then(|text| text.trim().parse().ok()).unwrap_or(1).clamp(1, most)
}

/// Whether the element is a block.
pub(super) fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hgroup"
            | "hr"
            | "html"
            | "legend"
            | "li"
            | "listing"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "p"
            | "plaintext"
            | "pre"
            | "search"
            | "section"
            | "summary"
            | "table"
            | "tbody"
            | "td"
            | "tfoot"
            | "th"
            | "thead"
            | "tr"
            | "ul"
            | "xmp"
    )
}

/// Whether any descendant is a block.
pub(super) fn holds_a_block(node: &NodeRef<'_>) -> bool {
    node.descendants_it().any(|below| name_of(&below).is_some_and(|name| is_block(&name)))
}
