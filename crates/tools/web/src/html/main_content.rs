//! Finds the main content of a page.

use std::collections::HashMap;

use dom_query::{NodeId, NodeRef};

use super::element::{attribute, name_of};
use super::weights::Weights;

/// The page's body if it has one, else the whole page.
pub(super) fn body_of<'t>(root: &NodeRef<'t>) -> NodeRef<'t> {
    let body = root.descendants_it().find(|node| name_of(node).is_some_and(|name| &*name == "body"));
    body.unwrap_or(*root)
}

/// Returns what the page marks as its content, else the element with most of its running text, else
/// everything. Losing content is worse than keeping noise: a part is chosen only if it has much of
/// the text.
pub(super) fn choose<'t>(body: &NodeRef<'t>) -> NodeRef<'t> {
    let weights = Weights::below(body);
    let all = weights.of(body).text;
    let holds = |node: &NodeRef<'_>, percent: usize| {
        let text = weights.of(node).text;
        text > 0 && text * 100 >= all * percent
    };
    let marked = body.descendants_it().filter(is_main).max_by_key(|node| weights.of(node).text);
    if let Some(main) = marked.filter(|main| holds(main, 20)) {
        return main;
    }
    let articles: Vec<NodeRef<'_>> =
        body.descendants_it().filter(|node| name_of(node).is_some_and(|name| &*name == "article")).collect();
    // Several articles are items of a list.
    let enough = if articles.len() == 1 { 40 } else { 75 };
    let article = articles.into_iter().max_by_key(|node| weights.of(node).text);
    if let Some(article) = article.filter(|article| holds(article, enough)) {
        return article;
    }
    by_running_text(body, &weights).filter(|node| holds(node, 55)).unwrap_or(*body)
}

fn is_main(node: &NodeRef<'_>) -> bool {
    name_of(node).is_some_and(|name| &*name == "main")
        || attribute(node, "role").is_some_and(|role| role.trim().eq_ignore_ascii_case("main"))
}

/// The element that contains the paragraphs. Each paragraph adds its score to its parent, and half
/// of it to its grandparent.
fn by_running_text<'t>(body: &NodeRef<'t>, weights: &Weights) -> Option<NodeRef<'t>> {
    let mut scores: HashMap<NodeId, (NodeRef<'t>, f64)> = HashMap::new();
    for node in body.descendants_it() {
        let is_paragraph =
            name_of(&node).is_some_and(|name| matches!(&*name, "p" | "pre" | "blockquote" | "h2" | "h3" | "ul" | "ol"));
        let weight = weights.of(&node);
        if !is_paragraph || weight.text < 25 {
            continue;
        }
        let worth = (1.0 + weight.text as f64 / 100.0).min(8.0) * (1.0 - weight.link_share());
        for (above, part) in node.ancestors_it(Some(2)).zip([1.0, 0.5]) {
            scores.entry(above.id).or_insert((above, 0.0)).1 += worth * part;
        }
    }
    let best = scores.into_values().max_by(|(a, x), (b, y)| {
        // Of equal scores the first element wins, so that the result is deterministic.
        x.total_cmp(y).then(b.id.cmp(&a.id))
    });
    best.map(|(node, _)| node)
}
