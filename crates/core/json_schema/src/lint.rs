//! Rules beyond validity: required fields are declared, and properties have descriptions.

use std::collections::{BTreeSet, HashSet};

use rcrt_breadcrumb::{Violation, Violations};
use serde_json::Value;

use crate::graph::{Edge, Graph, field};

/// What [`lint`] found.
#[derive(Debug, Default)]
pub struct Lint {
    /// Required fields that are not in any `properties`.
    pub errors: Vec<Violation>,
    /// Properties without a description.
    pub warnings: Vec<Violation>,
}

/// Checks a schema that compiles. The fields of the violations are places in the schema.
pub fn lint(schema: &Value) -> Result<Lint, Violations> {
    let graph = Graph::new(schema)?;
    let mut found = Lint::default();
    let named = Named::new(&graph);
    for (index, node) in graph.nodes.iter().enumerate() {
        let Value::Object(keywords) = node.schema else { continue };
        if let Some(Value::Array(required)) = keywords.get("required")
            && let Some(names) = named.at(index)
        {
            for name in required.iter().filter_map(Value::as_str).filter(|name| !names.contains(name)) {
                let mut location = crate::path::Path::new(&field(&format!("{}/required", node.pointer)));
                location.push(name);
                let message = "is required but not declared: add it to properties";
                found.errors.push(Violation::new(location.into_string(), message));
            }
        }
        for (edge, target) in &node.edges {
            if let Edge::Property(_) = edge
                && let Some(property) = graph.nodes.get(*target)
                && !described(&graph, *target)
            {
                let message = "has no description: describe it for the agents that call the tool";
                found.warnings.push(Violation::new(field(&property.pointer), message));
            }
        }
    }
    Ok(found)
}

fn described(graph: &Graph<'_>, index: usize) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![index];
    while let Some(index) = open.pop() {
        if !seen.insert(index) {
            continue;
        }
        let Some(node) = graph.nodes.get(index) else { continue };
        let text = node.schema.get("description").and_then(Value::as_str).unwrap_or("");
        // `false` forbids the property, so it needs no description.
        if !text.trim().is_empty() || *node.schema == Value::Bool(false) || node.schema.get("const").is_some() {
            return true;
        }
        if node.schema.get("$ref").is_some() {
            open.extend(graph.in_place(index));
        }
    }
    false
}

/// The properties declared for one place of the value, in any of the subschemas there.
struct Named<'g, 's> {
    graph: &'g Graph<'s>,
    /// For each subschema, those that apply it at the same place.
    above: Vec<Vec<usize>>,
}

impl<'g, 's> Named<'g, 's> {
    fn new(graph: &'g Graph<'s>) -> Self {
        let mut above = vec![Vec::new(); graph.nodes.len()];
        for index in 0..graph.nodes.len() {
            for target in graph.in_place(index) {
                if let Some(list) = above.get_mut(target) {
                    list.push(index);
                }
            }
        }
        Self { graph, above }
    }

    /// `None` if the names are unknown: there are no `properties`, or there are patterns.
    fn at(&self, index: usize) -> Option<BTreeSet<&'s str>> {
        let mut names = BTreeSet::new();
        let mut any_properties = false;
        let mut seen = HashSet::new();
        let mut open = vec![index];
        while let Some(index) = open.pop() {
            if !seen.insert(index) {
                continue;
            }
            let Some(Value::Object(keywords)) = self.graph.nodes.get(index).map(|node| node.schema) else { continue };
            if keywords.contains_key("patternProperties") {
                return None;
            }
            if let Some(Value::Object(properties)) = keywords.get("properties") {
                any_properties = true;
                names.extend(properties.keys().map(String::as_str));
            }
            open.extend(self.graph.in_place(index));
            open.extend(self.above.get(index).into_iter().flatten());
        }
        // With `required` and no properties anywhere, nothing is declared: every name is missing.
        (any_properties || !names.is_empty() || seen.len() == 1).then_some(names)
    }
}
