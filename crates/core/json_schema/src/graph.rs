//! A schema as a graph of subschemas: what a validator would visit, computed without a visit.
//!
//! The graph bounds hostile schemas before a recursive compiler or validator sees them: size,
//! depth, references that are unresolved or cyclic, and schemas whose cost grows exponentially with
//! the depth of the value.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use rcrt_breadcrumb::Violations;
use serde_json::{Map, Value};

/// The most subschemas in one schema.
const MAX_SUBSCHEMAS: usize = 2000;
/// The most levels of JSON in a schema.
const MAX_DEPTH: usize = 64;
/// The most bytes of a schema's JSON text.
const MAX_BYTES: usize = 256 * 1024;

pub(crate) const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The place in the instance where a subschema is applied, relative to its parent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Edge {
    /// At the same place (`allOf`, `$ref`, `if`, …).
    InPlace,
    /// At the property of this name.
    Property(String),
    /// At any child.
    AnyChild,
    /// Only through a reference (`$defs`).
    Definition,
}

#[derive(Debug)]
pub(crate) struct Node<'s> {
    pub schema: &'s Value,
    /// JSON pointer from the root.
    pub pointer: String,
    pub edges: Vec<(Edge, usize)>,
}

#[derive(Debug)]
pub(crate) struct Graph<'s> {
    /// The root is the first node.
    pub nodes: Vec<Node<'s>>,
    /// Bytes of the whole schema as JSON text.
    pub bytes: usize,
}

struct Builder<'s> {
    root: &'s Value,
    nodes: Vec<Node<'s>>,
    by_pointer: HashMap<String, usize>,
    anchors: HashMap<&'s str, usize>,
    references: Vec<(usize, &'static str, &'s str)>,
    found: Violations,
}

impl<'s> Graph<'s> {
    /// Returns the graph, or the violations with their places in the schema.
    pub(crate) fn new(root: &'s Value) -> Result<Self, Violations> {
        let bytes = bounded(root)?;
        let mut builder = Builder {
            root,
            nodes: Vec::new(),
            by_pointer: HashMap::new(),
            anchors: HashMap::new(),
            references: Vec::new(),
            found: Violations::default(),
        };
        builder.walk_from(root, String::new());
        builder.resolve();
        builder.found.into_result()?;
        Ok(Self { nodes: builder.nodes, bytes })
    }

    pub(crate) fn in_place(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.nodes
            .get(node)
            .into_iter()
            .flat_map(|node| node.edges.iter().filter(|(edge, _)| *edge == Edge::InPlace).map(|(_, target)| *target))
    }
}

/// Checks depth and size. Returns the bytes of the schema's JSON text.
fn bounded(root: &Value) -> Result<usize, Violations> {
    let mut open = vec![(root, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(Violations::one("", format!("is nested deeper than {MAX_DEPTH} levels")));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(entries) => open.extend(entries.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    let bytes = serde_json::to_string(root).map_or(0, |text| text.len());
    if bytes > MAX_BYTES {
        return Err(Violations::one("", format!("has {bytes} bytes; at most {MAX_BYTES} are allowed")));
    }
    Ok(bytes)
}

impl<'s> Builder<'s> {
    /// Adds the subschema at `pointer` and everything below it. Returns its index.
    fn walk_from(&mut self, schema: &'s Value, pointer: String) -> usize {
        let first = self.add(schema, pointer);
        let mut open = vec![first];
        while let Some(index) = open.pop() {
            let Some((schema, pointer)) = self.nodes.get(index).map(|node| (node.schema, node.pointer.clone())) else {
                break;
            };
            let Value::Object(keywords) = schema else { continue };
            if self.nodes.len() > MAX_SUBSCHEMAS {
                self.found.add("", format!("has more than {MAX_SUBSCHEMAS} subschemas"));
                return first;
            }
            self.identifiers(index, keywords, &pointer);
            for (edge, child, child_pointer) in children(keywords, &pointer) {
                let known = self.by_pointer.get(&child_pointer).copied();
                let target = known.unwrap_or_else(|| {
                    let target = self.add(child, child_pointer);
                    open.push(target);
                    target
                });
                if let Some(node) = self.nodes.get_mut(index) {
                    node.edges.push((edge, target));
                }
            }
        }
        first
    }

    fn add(&mut self, schema: &'s Value, pointer: String) -> usize {
        let index = self.nodes.len();
        self.by_pointer.insert(pointer.clone(), index);
        self.nodes.push(Node { schema, pointer, edges: Vec::new() });
        index
    }

    fn identifiers(&mut self, index: usize, keywords: &'s Map<String, Value>, pointer: &str) {
        let at = |keyword: &str| field(&format!("{pointer}/{keyword}"));
        if let Some(Value::String(draft)) = keywords.get("$schema")
            && draft.trim_end_matches('#') != DRAFT
        {
            let given: String = draft.chars().take(100).collect();
            self.found
                .add(at("$schema"), format!("is {given:?}; the only supported version is {DRAFT}: leave $schema out"));
        }
        if keywords.contains_key("$id") && !pointer.is_empty() {
            self.found.add(at("$id"), "is allowed only at the root of a schema; use $defs and \"#/$defs/…\"");
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            let Some(Value::String(name)) = keywords.get(keyword) else { continue };
            if self.anchors.insert(name, index).is_some() {
                // The validator could use the other one, whose cost is not counted.
                let shown: String = name.chars().take(100).collect();
                self.found.add(at(keyword), format!("is {shown:?}, which another subschema has; choose another name"));
            }
        }
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(Value::String(reference)) = keywords.get(keyword) {
                self.references.push((index, keyword, reference));
            }
        }
    }

    fn resolve(&mut self) {
        // A reference may lead to a place that no keyword leads to. There may be more references.
        while let Some((from, keyword, reference)) = self.references.pop() {
            let at = self.nodes.get(from).map(|node| field(&format!("{}/{keyword}", node.pointer))).unwrap_or_default();
            let shown: String = reference.chars().take(100).collect();
            let Some(fragment) = reference.strip_prefix('#') else {
                self.found
                    .add(at, format!("is {shown:?}; only local references are allowed, such as \"#/$defs/name\""));
                continue;
            };
            match self.target(fragment) {
                Some(target) => {
                    if let Some(node) = self.nodes.get_mut(from) {
                        node.edges.push((Edge::InPlace, target));
                    }
                }
                None => self.found.add(at, format!("is {shown:?}, which does not exist in the schema")),
            }
        }
    }

    fn target(&mut self, fragment: &str) -> Option<usize> {
        let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.anchors.get(fragment.as_ref()).copied();
        }
        if let Some(known) = self.by_pointer.get(fragment.as_ref()) {
            return Some(*known);
        }
        let schema = self.root.pointer(&fragment)?;
        (schema.is_object() || schema.is_boolean()).then(|| self.walk_from(schema, fragment.into_owned()))
    }
}

/// The direct subschemas of a schema, with their edges and pointers.
fn children<'s>(keywords: &'s Map<String, Value>, pointer: &str) -> Vec<(Edge, &'s Value, String)> {
    let mut found = Vec::new();
    for (keyword, value) in keywords {
        let at = format!("{pointer}/{}", escape(keyword));
        match (keyword.as_str(), value) {
            ("not" | "if" | "then" | "else", _) => found.push((Edge::InPlace, value, at)),
            (
                "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "items"
                | "unevaluatedItems"
                | "contains"
                | "contentSchema",
                _,
            ) => found.push((Edge::AnyChild, value, at)),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(items)) => {
                let edge = if keyword == "prefixItems" { Edge::AnyChild } else { Edge::InPlace };
                found.extend(
                    items.iter().enumerate().map(|(index, item)| (edge.clone(), item, format!("{at}/{index}"))),
                );
            }
            ("properties", Value::Object(entries)) => found.extend(
                entries
                    .iter()
                    .map(|(name, item)| (Edge::Property(name.clone()), item, format!("{at}/{}", escape(name)))),
            ),
            // `dependencies` is from older drafts. The validator still applies it.
            (
                "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions",
                Value::Object(entries),
            ) => {
                let edge = match keyword.as_str() {
                    "patternProperties" => Edge::AnyChild,
                    "dependentSchemas" | "dependencies" => Edge::InPlace,
                    _ => Edge::Definition,
                };
                // A list in `dependencies` has names.
                let schemas = entries.iter().filter(|(_, item)| !item.is_array());
                found.extend(schemas.map(|(name, item)| (edge.clone(), item, format!("{at}/{}", escape(name)))));
            }
            _ => {}
        }
    }
    found
}

fn escape(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

/// A JSON pointer as a dotted field.
pub(crate) fn field(pointer: &str) -> String {
    let mut path = crate::path::Path::default();
    for segment in pointer.split('/').skip(1) {
        path.push(&segment.replace("~1", "/").replace("~0", "~"));
    }
    path.into_string()
}
