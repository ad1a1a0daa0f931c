//! Detects the parts of a page that are not its content.

use dom_query::NodeRef;

use super::element::{attribute, name_of};
use super::weights::Weights;
use crate::reader_pool::ReadDeadline;

/// Removes invisible content: scripts, styles, hidden parts.
pub(super) fn strip_hidden(root: &NodeRef<'_>) {
    remove(root, is_hidden);
}

/// Removes navigation, footers, sidebars and similar parts.
pub(super) fn strip(body: &NodeRef<'_>, until: &ReadDeadline) {
    let weights = Weights::below(body);
    let all = weights.of(body).text;
    remove(body, |node| {
        // What cannot be checked in time stays.
        if until.is_over() {
            return false;
        }
        let share = |part: usize| weights.of(node).text * 100 > all * part;
        match verdict(node) {
            Verdict::Content => false,
            // A name is only a hint: an element with much of the page's text is not decoration.
            Verdict::Suspect => !share(40) && !holds_content(node),
            Verdict::Noise => !share(75),
        }
    });
}

/// Removes each topmost node that is noise.
fn remove(root: &NodeRef<'_>, is_noise: impl Fn(&NodeRef<'_>) -> bool) {
    let mut way: Vec<NodeRef<'_>> = root.children_it(false).collect();
    while let Some(node) = way.pop() {
        if node.is_element() && is_noise(&node) {
            node.remove_from_parent();
        } else {
            way.extend(node.children_it(false));
        }
    }
}

fn is_hidden(node: &NodeRef<'_>) -> bool {
    let Some(name) = name_of(node) else { return false };
    if matches!(
        &*name,
        "script"
            | "style"
            | "head"
            | "x-template"
            | "iframe"
            | "object"
            | "embed"
            | "applet"
            | "canvas"
            | "audio"
            | "video"
            | "datalist"
            | "noembed"
            | "noframes"
            | "svg"
            | "link"
            | "meta"
            | "title"
            | "base"
    ) {
        // A page without a head has its title in the body.
        return true;
    }
    let Some(element) = node.element_ref() else { return false };
    let has = |wanted: &str| element.attrs.iter().find(|attr| &*attr.name.local == wanted).map(|attr| &*attr.value);
    if has("hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found")) {
        return true;
    }
    has("style").is_some_and(|style| {
        let style: String = style.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
        style.contains("display:none") || style.contains("visibility:hidden")
    })
}

enum Verdict {
    Content,
    /// Its names suggest noise.
    Suspect,
    /// Its element or role is noise.
    Noise,
}

fn verdict(node: &NodeRef<'_>) -> Verdict {
    let Some(name) = name_of(node) else { return Verdict::Content };
    let role = attribute(node, "role").unwrap_or_default().to_ascii_lowercase();
    match role.trim() {
        "navigation" | "banner" | "contentinfo" | "complementary" | "search" | "dialog" | "alertdialog" | "menu"
        | "menubar" | "toolbar" | "tablist" => return Verdict::Noise,
        "main" | "article" => return Verdict::Content,
        _ => {}
    }
    let is_hidden_from_readers = attribute(node, "aria-hidden").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    match &*name {
        "nav" | "menu" | "dialog" | "button" | "select" | "textarea" | "search" | "noscript" => Verdict::Noise,
        "footer" => {
            if stands_in(node, &["blockquote", "figure"]) {
                Verdict::Content
            } else {
                Verdict::Noise
            }
        }
        "aside" => {
            if is_note(node) {
                Verdict::Content
            } else {
                Verdict::Noise
            }
        }
        "header" if !stands_in(node, &["main", "article", "section"]) => {
            if holds(node, &["h1"]) {
                Verdict::Suspect
            } else {
                Verdict::Noise
            }
        }
        "div" | "section" | "ul" | "ol" | "dl" | "table" | "form" | "p" | "span" | "header" if is_named_noise(node) => {
            Verdict::Suspect
        }
        _ if is_hidden_from_readers => Verdict::Suspect,
        _ => Verdict::Content,
    }
}

/// A note within the text, as in documentation.
fn is_note(node: &NodeRef<'_>) -> bool {
    stands_in(node, &["main", "article"])
        && names(node).any(|word| {
            matches!(&*word, "note" | "tip" | "warning" | "caution" | "important" | "admonition" | "callout" | "hint")
        })
}

fn is_named_noise(node: &NodeRef<'_>) -> bool {
    let words: Vec<String> = names(node).collect();
    let follow = |first: &str, second: &str| words.windows(2).any(|pair| pair[0] == first && pair[1] == second);
    words.iter().any(|word| {
        matches!(
            word.as_str(),
            "nav"
                | "navbar"
                | "navigation"
                | "navbox"
                | "subnav"
                | "sidenav"
                | "menu"
                | "sidebar"
                | "breadcrumb"
                | "breadcrumbs"
                | "footer"
                | "cookie"
                | "cookies"
                | "consent"
                | "gdpr"
                | "advert"
                | "adverts"
                | "advertisement"
                | "ads"
                | "adsbygoogle"
                | "sponsored"
                | "promo"
                | "newsletter"
                | "sharing"
                | "sharedaddy"
                | "related"
                | "recommended"
                | "recommendations"
                | "popup"
                | "modal"
                | "pagination"
                | "pager"
                | "toolbar"
                | "noprint"
                | "editsection"
                | "catlinks"
                | "skip"
                | "skiplink"
                | "masthead"
                | "toc"
                | "tableofcontents"
        )
    }) || follow("side", "bar")
        || follow("social", "links")
        || follow("social", "media")
        || follow("social", "share")
        || follow("share", "buttons")
        || follow("share", "bar")
        || follow("share", "links")
        || follow("ad", "container")
        || follow("ad", "slot")
        || follow("ad", "banner")
        || follow("you", "may")
        || follow("read", "next")
}

/// The words of its class and id, in lower case: `mainNav`, `main-nav` and `main_nav` all contain
/// `nav`.
fn names(node: &NodeRef<'_>) -> impl Iterator<Item = String> + use<> {
    let mut words = Vec::new();
    for attr in ["class", "id"] {
        let Some(value) = attribute(node, attr) else { continue };
        let mut word = String::new();
        let mut before_is_lower = false;
        for c in value.chars() {
            if !c.is_ascii_alphanumeric() || (before_is_lower && c.is_ascii_uppercase()) {
                words.push(std::mem::take(&mut word));
            }
            if c.is_ascii_alphanumeric() {
                word.push(c.to_ascii_lowercase());
            }
            before_is_lower = c.is_ascii_lowercase();
        }
        words.push(word);
    }
    words.into_iter().filter(|word| !word.is_empty())
}

fn stands_in(node: &NodeRef<'_>, names: &[&str]) -> bool {
    node.ancestors_it(None).any(|above| name_of(&above).is_some_and(|name| names.contains(&&*name)))
}

fn holds(node: &NodeRef<'_>, names: &[&str]) -> bool {
    node.descendants_it().any(|below| name_of(&below).is_some_and(|name| names.contains(&&*name)))
}

fn holds_content(node: &NodeRef<'_>) -> bool {
    node.descendants_it().any(|below| {
        name_of(&below).is_some_and(|name| matches!(&*name, "main" | "article" | "h1"))
            || attribute(&below, "role").is_some_and(|role| role.eq_ignore_ascii_case("main"))
    })
}
