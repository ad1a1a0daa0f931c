//! How often a validator applies each subschema at one place of a value, and one level below.

use std::collections::HashMap;

use rcrt_breadcrumb::Violations;

use crate::graph::{Edge, Graph, field};

/// The most subschemas that apply at one place.
const MAX_AT_ONE_PLACE: u64 = 5000;
/// The longest chain of subschemas applied at one place: validators recurse along it.
const MAX_CHAIN: u32 = 40;
/// The most bytes of what the compiler keeps for `unevaluatedProperties` and `unevaluatedItems`.
const MAX_UNEVALUATED: u64 = 4 * 1024 * 1024;
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
const CEILING: u64 = 1 << 40;

/// The subschemas that one schema applies at its own place, including itself, with their counts.
type Expansion = HashMap<usize, u64>;

#[derive(Debug)]
pub(crate) struct Expansions {
    at_place: Vec<Expansion>,
    below: Vec<Below>,
    /// Approximate bytes that the compiler keeps to find unevaluated properties and items.
    pub unevaluated_bytes: u64,
}

impl Expansions {
    pub(crate) fn of(graph: &Graph<'_>) -> Result<Self, Violations> {
        let mut expander = Expander { graph, done: HashMap::new(), marks: HashMap::new(), unevaluated_bytes: 0 };
        let count = graph.nodes.len();
        for node in 0..count {
            expander.expand(node, 0)?;
        }
        let Expander { mut done, unevaluated_bytes, .. } = expander;
        let at_place: Vec<Expansion> =
            (0..count).map(|node| done.remove(&node).map(|(expansion, _)| expansion).unwrap_or_default()).collect();
        let below = at_place.iter().map(|expansion| Below::new(graph, expansion)).collect();
        Ok(Self { at_place, below, unevaluated_bytes })
    }

    /// The weight of all visits to one place, by its depth. The last entry applies to all deeper
    /// places.
    pub(crate) fn by_depth(&self, deepest: usize, weight: &dyn Fn(usize) -> u64) -> Vec<u64> {
        let of_place = |expansion: &Expansion| {
            let visits = expansion.iter();
            let sum =
                visits.fold(0, |sum: u64, (node, times)| sum.saturating_add(weight(*node).saturating_mul(*times)));
            sum.min(CEILING)
        };
        let mut cost: Vec<u64> = self.at_place.iter().map(of_place).collect();
        let root = |cost: &[u64]| cost.first().copied().unwrap_or(1);
        let mut at_root = vec![root(&cost)];
        for _ in 0..deepest {
            let next: Vec<u64> = self.below.iter().map(|below| below.cost(&cost)).collect();
            if next == cost {
                break;
            }
            cost = next;
            at_root.push(root(&cost));
        }
        at_root
    }
}

struct Expander<'g, 's> {
    graph: &'g Graph<'s>,
    /// Expansions with the length of their longest chain.
    done: HashMap<usize, (Expansion, u32)>,
    /// The visits that find out what a schema has evaluated.
    marks: HashMap<usize, Expansion>,
    unevaluated_bytes: u64,
}

impl Expander<'_, '_> {
    /// `depth` is the length of this chain at one place. It never exceeds [`MAX_CHAIN`], so cycles
    /// end there.
    fn expand(&mut self, node: usize, depth: u32) -> Result<u32, Violations> {
        if let Some((_, chain)) = self.done.get(&node) {
            return Ok(*chain);
        }
        if depth > MAX_CHAIN {
            let message = format!("refers to itself in a cycle, or through more than {MAX_CHAIN} schemas at one place");
            return Err(Violations::one(self.place(node), message));
        }
        let mut expansion = Expansion::from([(node, 1)]);
        let mut longest = 0;
        for target in self.targets(node) {
            longest = longest.max(self.expand(target, depth + 1)? + 1);
            if let Some((inner, _)) = self.done.get(&target) {
                add(&mut expansion, inner);
            }
        }
        for _ in 0..self.unevaluated(node) {
            let marks = self.marks(node)?;
            self.unevaluated_bytes = self.unevaluated_bytes.saturating_add(self.compiled_bytes(&marks));
            if self.unevaluated_bytes > MAX_UNEVALUATED {
                let message = format!(
                    "has too many schemas beside unevaluatedProperties or unevaluatedItems: they can take about \
                     {MAX_UNEVALUATED} bytes when compiled"
                );
                return Err(Violations::one(self.place(node), message));
            }
            add(&mut expansion, &marks);
        }
        self.bounded(node, &expansion, longest)?;
        self.done.insert(node, (expansion, longest));
        Ok(longest)
    }

    /// To find out what a schema has evaluated, the validator checks each schema at the same place
    /// once more, and then asks each that is valid what it has evaluated.
    fn marks(&mut self, node: usize) -> Result<Expansion, Violations> {
        if let Some(marks) = self.marks.get(&node) {
            return Ok(marks.clone());
        }
        let mut marks = Expansion::from([(node, 1)]);
        for target in self.targets(node) {
            add(&mut marks, &self.marks(target)?);
            if let Some((valid, _)) = self.done.get(&target) {
                add(&mut marks, valid);
            }
        }
        self.bounded(node, &marks, 0)?;
        self.marks.insert(node, marks.clone());
        Ok(marks)
    }

    fn bounded(&self, node: usize, expansion: &Expansion, chain: u32) -> Result<(), Violations> {
        if chain <= MAX_CHAIN && expansion.values().sum::<u64>() <= MAX_AT_ONE_PLACE {
            return Ok(());
        }
        let message = format!(
            "applies too many schemas at one place: at most {MAX_AT_ONE_PLACE} schemas, in chains of at most {MAX_CHAIN}"
        );
        Err(Violations::one(self.place(node), message))
    }

    fn targets(&self, node: usize) -> Vec<usize> {
        self.graph.in_place(node).collect()
    }

    fn place(&self, node: usize) -> String {
        self.graph.nodes.get(node).map(|node| field(&node.pointer)).unwrap_or_default()
    }

    fn unevaluated(&self, node: usize) -> usize {
        let schema = self.graph.nodes.get(node).map(|node| node.schema);
        UNEVALUATED.iter().filter(|keyword| schema.is_some_and(|schema| schema.get(**keyword).is_some())).count()
    }

    /// Each schema that is asked has a copy of its property names.
    fn compiled_bytes(&self, marks: &Expansion) -> u64 {
        let of_one = |node: usize| {
            let schema = self.graph.nodes.get(node).map(|node| node.schema);
            let named = schema.and_then(|schema| schema.get("properties")?.as_object());
            let names = named.into_iter().flat_map(|properties| properties.keys());
            1024 + names.map(|name| 64 + name.len() as u64).sum::<u64>()
        };
        marks.iter().map(|(node, times)| of_one(*node).saturating_mul(*times)).sum()
    }
}

fn add(to: &mut Expansion, from: &Expansion) {
    for (schema, times) in from {
        *to.entry(*schema).or_insert(0) += times;
    }
}

/// What one schema applies one level below its own place.
#[derive(Debug)]
struct Below {
    any: Vec<(usize, u64)>,
    named: Vec<Vec<(usize, u64)>>,
}

impl Below {
    fn new(graph: &Graph<'_>, expansion: &Expansion) -> Self {
        let mut any = HashMap::new();
        let mut named: HashMap<&str, HashMap<usize, u64>> = HashMap::new();
        for (schema, times) in expansion {
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
