//! The most visits of a validator to one place in a value, by the place's depth, and the pattern
//! states that each byte of text there is matched against.
//!
//! Two references to the same definition from one place double the visits there. A recursive schema
//! that does so doubles them at every level, which is too expensive for a deep value. So the cost
//! is computed before a check.

use std::collections::HashMap;

use rcrt_breadcrumb::Violations;
use serde_json::Value;

use crate::graph::{Edge, Graph, field};

/// The most subschemas that apply at one place.
const MAX_AT_ONE_PLACE: u64 = 5000;
/// The longest chain of subschemas applied at one place: validators recurse along it.
const MAX_CHAIN: u32 = 40;
/// Deeper values are refused.
pub(crate) const MAX_VALUE_DEPTH: usize = 128;
const CEILING: u64 = 1 << 40;
/// Pattern states that are matched against one byte in the time of one step.
const STATES_OF_A_STEP: u64 = 4;

/// The subschemas that one schema applies at its own place, including itself, with their counts.
type Expansion = HashMap<usize, u64>;

/// Costs by depth. The last entry applies to all deeper places.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Visits to this place and to all places above it. Each visit may read or copy everything
    /// below.
    pub visits: Vec<u64>,
    /// Pattern states that are matched against each byte of the text or the keys at this place.
    pub states: Vec<u64>,
}

impl Cost {
    /// The most steps that a check of this value can cost. A step is 16 bytes or one value. `None`
    /// if that exceeds `most`, and for values that are too deep.
    pub(crate) fn of(&self, value: &Value, most: u64) -> Option<u64> {
        let mut left = most;
        self.spend(value, 0, &mut left)?;
        Some(most - left)
    }

    /// Recursion is safe because the depth is bounded.
    fn spend(&self, value: &Value, depth: usize, left: &mut u64) -> Option<()> {
        if depth > MAX_VALUE_DEPTH {
            return None;
        }
        let at = |costs: &[u64], depth: usize| costs.get(depth).or(costs.last()).copied().unwrap_or(1);
        let (visits, states) = (at(&self.visits, depth), at(&self.states, depth));
        let mut pay = |text: &str, states: u64| {
            let bytes = text.len() as u64;
            let matching = bytes.saturating_mul(states) / STATES_OF_A_STEP;
            let cost = visits.saturating_mul(1 + bytes / 16).saturating_add(matching);
            left.checked_sub(cost).map(|rest| *left = rest)
        };
        match value {
            Value::String(text) => pay(text, states),
            Value::Array(items) => {
                pay("", 0)?;
                items.iter().try_for_each(|item| self.spend(item, depth + 1, left))
            }
            Value::Object(entries) => {
                pay("", 0)?;
                let states = states.saturating_add(at(&self.states, depth + 1));
                entries.keys().try_for_each(|key| pay(key, states))?;
                entries.values().try_for_each(|item| self.spend(item, depth + 1, left))
            }
            _ => pay("", 0),
        }
    }
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

/// `states` has the pattern states of each subschema.
pub(crate) fn by_depth(graph: &Graph<'_>, states: &[u64]) -> Result<Cost, Violations> {
    let mut expander = Expander { graph, done: HashMap::new() };
    let count = graph.nodes.len();
    for node in 0..count {
        expander.expand(node, 0)?;
    }
    let expansions = expander.done;
    let below: Vec<Below> = (0..count).map(|node| Below::new(graph, expansions.get(&node).map(|(e, _)| e))).collect();
    let at_depths = |weight: &dyn Fn(usize) -> u64| {
        let own = |expansion: &Expansion| {
            expansion
                .iter()
                .fold(0_u64, |sum, (schema, times)| sum.saturating_add(weight(*schema).saturating_mul(*times)))
        };
        let own = (0..count).map(|node| expansions.get(&node).map_or(1, |(expansion, _)| own(expansion).min(CEILING)));
        let mut cost: Vec<u64> = own.collect();
        let mut at_root = vec![cost.first().copied().unwrap_or(1)];
        for _ in 0..MAX_VALUE_DEPTH {
            let next: Vec<u64> = below.iter().map(|below| below.cost(&cost)).collect();
            if next == cost {
                break;
            }
            cost = next;
            at_root.push(cost.first().copied().unwrap_or(1));
        }
        at_root
    };
    let mut visits = at_depths(&|_| 1);
    // Even what is not visited is read.
    let mut above = 1_u64;
    let last = visits.last().copied().unwrap_or(1);
    visits.resize(MAX_VALUE_DEPTH + 1, last);
    for at in &mut visits {
        above = above.saturating_add(*at);
        *at = above;
    }
    Ok(Cost { visits, states: at_depths(&|schema| states.get(schema).copied().unwrap_or(0)) })
}

struct Expander<'g, 's> {
    graph: &'g Graph<'s>,
    /// Expansions with the length of their longest chain.
    done: HashMap<usize, (Expansion, u32)>,
}

impl Expander<'_, '_> {
    /// `depth` is the length of this chain at one place. It never exceeds [`MAX_CHAIN`], so cycles
    /// end there.
    fn expand(&mut self, node: usize, depth: u32) -> Result<u32, Violations> {
        if let Some((_, chain)) = self.done.get(&node) {
            return Ok(*chain);
        }
        let at = || self.graph.nodes.get(node).map(|node| field(&node.pointer)).unwrap_or_default();
        if depth > MAX_CHAIN {
            return Err(Violations::one(
                at(),
                format!("refers to itself in a cycle, or through more than {MAX_CHAIN} schemas at one place"),
            ));
        }
        let mut expansion = Expansion::from([(node, 1)]);
        let mut longest = 0;
        let targets: Vec<usize> = self.graph.in_place(node).collect();
        for target in targets {
            longest = longest.max(self.expand(target, depth + 1)? + 1);
            if let Some((inner, _)) = self.done.get(&target) {
                for (schema, times) in inner {
                    *expansion.entry(*schema).or_insert(0) += times;
                }
            }
        }
        if longest > MAX_CHAIN || expansion.values().sum::<u64>() > MAX_AT_ONE_PLACE {
            let message = format!(
                "applies too many schemas at one place: at most {MAX_AT_ONE_PLACE} schemas, in chains of at most {MAX_CHAIN}"
            );
            return Err(Violations::one(at(), message));
        }
        self.done.insert(node, (expansion, longest));
        Ok(longest)
    }
}

/// What one schema applies one level below its own place.
struct Below {
    any: Vec<(usize, u64)>,
    named: Vec<Vec<(usize, u64)>>,
}

impl Below {
    fn new(graph: &Graph<'_>, expansion: Option<&Expansion>) -> Self {
        let mut any = HashMap::new();
        let mut named: HashMap<&str, HashMap<usize, u64>> = HashMap::new();
        for (schema, times) in expansion.into_iter().flatten() {
            for (edge, target) in graph.nodes.get(*schema).into_iter().flat_map(|node| &node.edges) {
                let group = match edge {
                    Edge::AnyChild => &mut any,
                    Edge::Property(name) => named.entry(name).or_default(),
                    Edge::InPlace | Edge::Definition => continue,
                };
                *group.entry(*target).or_insert(0) += times;
            }
        }
        Self {
            any: any.into_iter().collect(),
            named: named.into_values().map(|group| group.into_iter().collect()).collect(),
        }
    }

    fn cost(&self, of: &[u64]) -> u64 {
        let sum = |group: &[(usize, u64)]| {
            group.iter().fold(0u64, |sum, (target, times)| {
                let cost = of.get(*target).copied().unwrap_or(1).saturating_mul(*times);
                sum.saturating_add(cost).min(CEILING)
            })
        };
        let named = self.named.iter().map(|group| sum(group)).max().unwrap_or(0);
        named.saturating_add(sum(&self.any)).min(CEILING)
    }
}
