//! The most visits of a validator to one place in a value, by the depth of the place, with the
//! names that it looks up there, and the pattern states that each byte of text there is matched
//! against.
//!
//! Two references to the same definition from one place double the visits there. A recursive schema
//! that does so doubles them at every level, which is too expensive for a deep value. So the cost
//! is computed before a check.

use serde_json::Value;

use crate::expansion::Expansions;
use crate::graph::Graph;
use crate::pattern::Patterns;

/// Deeper values are refused.
pub(crate) const MAX_VALUE_DEPTH: usize = 128;
/// Pattern states that are matched against one byte in the time of one step.
const STATES_OF_A_STEP: u64 = 4;
/// Names that are looked up in an object in the time of one step.
const LOOKUPS_OF_A_STEP: u64 = 4;

/// Costs by depth. The last entry applies to all deeper places.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Visits to this place and to all places above it. Each visit may read or copy everything
    /// below.
    visits: Vec<u64>,
    /// Pattern states that are matched against each byte of the text or the keys at this place.
    states: Vec<u64>,
    /// Steps before the matches of one text at this place.
    preparation: Vec<u64>,
    /// Steps before the first match.
    start: u64,
}

impl Cost {
    pub(crate) fn of_schema(graph: &Graph<'_>, expansions: &Expansions, patterns: &Patterns) -> Self {
        let of = |node: usize| patterns.matching.get(node).copied().unwrap_or_default();
        let visit = |node: usize| 1 + graph.nodes.get(node).map_or(0, |node| lookups(node.schema)) / LOOKUPS_OF_A_STEP;
        Self {
            visits: cumulated(expansions.by_depth(MAX_VALUE_DEPTH, &visit)),
            states: expansions.by_depth(MAX_VALUE_DEPTH, &|node| of(node).states),
            preparation: expansions.by_depth(MAX_VALUE_DEPTH, &|node| of(node).preparation),
            start: patterns.preparation,
        }
    }

    /// The most steps that a check of this value can cost. A step is 16 bytes or one value. `None`
    /// if that exceeds `most`, and for values that are too deep.
    pub(crate) fn of(&self, value: &Value, most: u64) -> Option<u64> {
        let mut left = most.checked_sub(self.start)?;
        self.spend(value, 0, &mut left)?;
        Some(most - left)
    }

    /// Recursion is safe because the depth is bounded.
    fn spend(&self, value: &Value, depth: usize, left: &mut u64) -> Option<()> {
        if depth > MAX_VALUE_DEPTH {
            return None;
        }
        let mut pay = |cost: u64| left.checked_sub(cost).map(|rest| *left = rest);
        let visits = at(&self.visits, depth);
        let of_text = |text: &str, visits: u64, states: u64, preparation: u64| {
            let bytes = text.len() as u64;
            let matching = bytes.saturating_mul(states) / STATES_OF_A_STEP;
            visits.saturating_mul(1 + bytes / 16).saturating_add(matching).saturating_add(preparation)
        };
        match value {
            Value::String(text) => pay(of_text(text, visits, at(&self.states, depth), at(&self.preparation, depth))),
            Value::Array(items) => {
                pay(visits)?;
                items.iter().try_for_each(|item| self.spend(item, depth + 1, left))
            }
            Value::Object(entries) => {
                pay(visits)?;
                // The schemas one level below include those of the names.
                let both = |costs: &[u64]| at(costs, depth).saturating_add(at(costs, depth + 1));
                let (states, preparation) = (both(&self.states), both(&self.preparation));
                let visits = at(&self.visits, depth + 1);
                entries.keys().try_for_each(|key| pay(of_text(key, visits, states, preparation)))?;
                entries.values().try_for_each(|item| self.spend(item, depth + 1, left))
            }
            _ => pay(visits),
        }
    }
}

/// The names that one visit can look up in an object, however small the object is.
fn lookups(schema: &Value) -> u64 {
    let dependent = ["dependentRequired", "dependentSchemas", "dependencies"];
    let entries = dependent.iter().filter_map(|keyword| schema.get(*keyword)?.as_object()).flatten();
    entries.map(|(_, needed)| 1 + needed.as_array().map_or(0, Vec::len) as u64).sum()
}

pub(crate) fn at(costs: &[u64], depth: usize) -> u64 {
    costs.get(depth).or(costs.last()).copied().unwrap_or(1)
}

/// Adds to each place the cost of all places above it. Even what is not visited is read.
pub(crate) fn cumulated(mut costs: Vec<u64>) -> Vec<u64> {
    let mut above = 0_u64;
    let last = costs.last().copied().unwrap_or(1);
    costs.resize(MAX_VALUE_DEPTH + 1, last);
    for at in &mut costs {
        above = above.saturating_add(*at);
        *at = above;
    }
    costs
}

pub(crate) fn is_too_deep(value: &Value) -> bool {
    fn is_deeper(value: &Value, than: usize) -> bool {
        let Some(below) = than.checked_sub(1) else { return value.is_array() || value.is_object() };
        match value {
            Value::Array(items) => items.iter().any(|item| is_deeper(item, below)),
            Value::Object(entries) => entries.values().any(|item| is_deeper(item, below)),
            _ => false,
        }
    }
    is_deeper(value, MAX_VALUE_DEPTH)
}
