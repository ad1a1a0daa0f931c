//! Measures how much text is below each element, and how much of it is in links.

use std::collections::HashMap;

use dom_query::{NodeId, NodeRef};

use super::element::name_of;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weight {
    /// Characters other than white space.
    pub text: usize,
    /// Those in links.
    pub linked: usize,
}

impl Weight {
    /// From 0 to 1.
    pub fn link_share(self) -> f64 {
        if self.text == 0 { 0.0 } else { self.linked as f64 / self.text as f64 }
    }
}

pub(super) struct Weights(HashMap<NodeId, Weight>);

impl Weights {
    /// Measures the node and all its descendants in one walk.
    pub fn below(root: &NodeRef<'_>) -> Self {
        let mut weights = HashMap::new();
        // Visits each node once on the way down and once on the way up.
        let mut way = vec![(*root, false, false)];
        while let Some((node, in_link, is_up)) = way.pop() {
            if !is_up {
                let own = if node.is_text() {
                    let text = node.query_or(0, |inner| match &inner.data {
                        dom_query::NodeData::Text { contents } => {
                            contents.chars().filter(|c| !c.is_whitespace()).count()
                        }
                        _ => 0,
                    });
                    Weight { text, linked: if in_link { text } else { 0 } }
                } else {
                    Weight::default()
                };
                weights.insert(node.id, own);
                let in_link = in_link || name_of(&node).is_some_and(|name| &*name == "a");
                way.push((node, in_link, true));
                way.extend(node.children_it(false).map(|child| (child, in_link, false)));
            } else if node.id != root.id
                && let Some(parent) = node.parent()
                && let Some(own) = weights.get(&node.id).copied()
            {
                let above: &mut Weight = weights.entry(parent.id).or_default();
                above.text += own.text;
                above.linked += own.linked;
            }
        }
        Self(weights)
    }

    pub fn of(&self, node: &NodeRef<'_>) -> Weight {
        self.0.get(&node.id).copied().unwrap_or_default()
    }
}
