//! The memory that the errors of a check can take, computed before it. The validator collects all
//! errors before it returns the first.

use serde_json::Value;

use crate::cost::{MAX_VALUE_DEPTH, at, cumulated};
use crate::expansion::Expansions;
use crate::graph::{Edge, Graph};
use crate::message::shorten;

/// Bytes of one unit.
pub(crate) const UNIT: u64 = 16;
/// An error without its texts, in units.
const ERROR: u64 = 26;
/// A value without its text, in units.
const COPY: u64 = 4;

/// Keywords that produce no error of their own.
const SILENT: [&str; 25] = [
    "$id",
    "$schema",
    "$anchor",
    "$dynamicAnchor",
    "$ref",
    "$dynamicRef",
    "$defs",
    "definitions",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "allOf",
    "if",
    "then",
    "else",
    "properties",
    "patternProperties",
    "prefixItems",
    "dependentSchemas",
];
/// Keywords of our own. Their errors contain a copy of the value (those of `multipleOf`: a number).
const COPIED: [&str; 4] = ["enum", "const", "uniqueItems", "pattern"];
/// Their errors contain the errors of all branches, each with a copy of its value.
const ALTERNATIVES: [&str; 2] = ["anyOf", "oneOf"];

/// By depth. The last entry applies to all deeper places.
#[derive(Debug)]
pub(crate) struct ErrorCost {
    /// Units of all errors at one place, without copied values.
    at_place: Vec<u64>,
    /// The errors at this place and at all places above it that contain a copy of their value.
    copies: Vec<u64>,
    /// Whether one error can contain others.
    pub nests: bool,
}

impl ErrorCost {
    pub(crate) fn of(graph: &Graph<'_>, expansions: &Expansions) -> Self {
        let nested = below_alternatives(graph);
        let schema = |node: usize| graph.nodes.get(node).map(|node| node.schema);
        let weight = |node: usize| schema(node).map_or(0, units);
        let copies = |node: usize| match nested.get(node) {
            Some(true) => weight(node) / ERROR,
            _ => {
                COPIED.iter().filter(|keyword| schema(node).is_some_and(|schema| schema.get(keyword).is_some())).count()
                    as u64
            }
        };
        Self {
            at_place: expansions.by_depth(MAX_VALUE_DEPTH, &weight),
            copies: cumulated(expansions.by_depth(MAX_VALUE_DEPTH, &copies)),
            nests: nested.contains(&true),
        }
    }

    /// The most bytes that the errors of this value can take. `None` if that exceeds `most`.
    pub(crate) fn of_value(&self, value: &Value, most: u64) -> Option<u64> {
        let mut left = most / UNIT;
        self.spend(value, 0, 0, &mut left)?;
        Some(most - left * UNIT)
    }

    /// `path`: the bytes of the place's name, which each error contains.
    fn spend(&self, value: &Value, depth: usize, path: u64, left: &mut u64) -> Option<()> {
        if depth > MAX_VALUE_DEPTH {
            return None;
        }
        let mut pay = |units: u64| left.checked_sub(units).map(|rest| *left = rest);
        let here = at(&self.at_place, depth);
        let text = value.as_str().map_or(0, |text| text.len() as u64 / UNIT);
        pay(here.saturating_add((here / ERROR).saturating_mul(path / UNIT)))?;
        pay(at(&self.copies, depth).saturating_mul(COPY + text))?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.spend(item, depth + 1, path + 8, left)),
            Value::Object(entries) => {
                // An error can name all properties, and there can be errors for each name.
                let of_names = (here.saturating_add(at(&self.at_place, depth + 1))) / ERROR;
                for (name, item) in entries {
                    let bytes = name.len() as u64;
                    let copy = 2 + bytes / UNIT;
                    let units = of_names.saturating_add(at(&self.copies, depth)).saturating_mul(copy);
                    *left = left.checked_sub(units)?;
                    self.spend(item, depth + 1, path + 1 + bytes, left)?;
                }
                Some(())
            }
            _ => Some(()),
        }
    }
}

/// The units of all errors that one visit of this schema can produce.
fn units(schema: &Value) -> u64 {
    let keywords = match schema {
        Value::Bool(false) => return ERROR,
        Value::Object(keywords) => keywords,
        _ => return 0,
    };
    let of_names = |names: &Value| {
        let names = names.as_array().into_iter().flatten();
        names.map(|name| ERROR + name.as_str().map_or(0, |name| name.len() as u64 / UNIT)).sum::<u64>()
    };
    let of_keyword = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "required" => of_names(value),
        "dependentRequired" | "dependencies" => {
            value.as_object().into_iter().flat_map(|entries| entries.values()).map(of_names).sum()
        }
        // These errors contain the schema.
        "not" => ERROR + COPY * value.to_string().len() as u64 / UNIT,
        "enum" | "const" | "pattern" => ERROR + shorten(&value.to_string()).len() as u64 / UNIT,
        keyword if SILENT.contains(&keyword) => 0,
        _ => ERROR,
    };
    keywords.iter().map(of_keyword).sum()
}

/// For each schema, whether it applies below a branch of an alternative.
fn below_alternatives(graph: &Graph<'_>) -> Vec<bool> {
    let mut nested = vec![false; graph.nodes.len()];
    let is_branch = |from: &str, target: &str| {
        let below = target.strip_prefix(from).and_then(|below| below.strip_prefix('/'));
        below.and_then(|below| below.split('/').next()).is_some_and(|keyword| ALTERNATIVES.contains(&keyword))
    };
    let mut open: Vec<usize> = Vec::new();
    for node in &graph.nodes {
        let branches = node.edges.iter().filter(|(_, target)| {
            graph.nodes.get(*target).is_some_and(|target| is_branch(&node.pointer, &target.pointer))
        });
        open.extend(branches.map(|(_, target)| *target));
    }
    while let Some(index) = open.pop() {
        let Some(seen) = nested.get_mut(index).filter(|seen| !**seen) else { continue };
        *seen = true;
        let edges = graph.nodes.get(index).into_iter().flat_map(|node| &node.edges);
        open.extend(edges.filter(|(edge, _)| *edge != Edge::Definition).map(|(_, target)| *target));
    }
    nested
}
