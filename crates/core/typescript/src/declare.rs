//! JSON Schemas as TypeScript types. A value that fits the schema fits the type, except where the
//! schema states members without a `type`: it is then read as one of objects or arrays.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use crate::declared_type::{DeclaredType, doc_comment, key, literal, text};

/// Declares `type NAME = …;` for a schema, with its description as the comment, and a type for each
/// part of the schema to which it refers. Their names begin with NAME, which must be an identifier.
///
/// What TypeScript cannot express is left out: patterns, bounds, `not`, `if`. A reference that
/// cannot be followed is `unknown`. An object has only the members that its schema names, unless
/// `additionalProperties` or `patternProperties` state others.
pub fn declare(name: &str, schema: &Value) -> String {
    let mut declarations = Declarations {
        root: schema,
        name,
        names: BTreeMap::from([(String::new(), name.to_owned())]),
        taken: BTreeSet::from([name.to_owned()]),
        open: VecDeque::from([(name.to_owned(), schema)]),
    };
    let mut declared = String::new();
    while let Some((name, schema)) = declarations.open.pop_front() {
        let of = declarations.type_of(schema, 0);
        declared += &doc_comment(schema, 0);
        declared += "type ";
        declared += &name;
        declared += " = ";
        declared += &of.text();
        declared += ";\n";
    }
    declared
}

struct Declarations<'s> {
    root: &'s Value,
    name: &'s str,
    /// The type of each JSON pointer that something refers to.
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    /// Declarations to be written.
    open: VecDeque<(String, &'s Value)>,
}

impl<'s> Declarations<'s> {
    /// `depth` is the number of types around this one, for the indentation.
    fn type_of(&mut self, schema: &'s Value, depth: usize) -> DeclaredType {
        let fields = match schema {
            Value::Bool(false) => return DeclaredType::Never,
            Value::Object(fields) => fields,
            _ => return DeclaredType::Unknown,
        };
        // Its references are relative to another document.
        if depth > 0 && fields.contains_key("$id") {
            return DeclaredType::Unknown;
        }
        let mut all = vec![match (fields.get("const"), fields.get("enum")) {
            (Some(value), _) => DeclaredType::One(literal(value)),
            (None, Some(Value::Array(values))) => {
                DeclaredType::union(values.iter().map(|value| DeclaredType::One(literal(value))))
            }
            _ => self.by_type(fields, depth),
        }];
        if let Some(Value::String(reference)) = fields.get("$ref") {
            all.push(self.reference(reference));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = fields.get(keyword) {
                let choices: Vec<DeclaredType> = choices.iter().map(|one| self.type_of(one, depth + 1)).collect();
                all.push(DeclaredType::union(choices));
            }
        }
        if let Some(Value::Array(parts)) = fields.get("allOf") {
            all.extend(parts.iter().map(|part| self.type_of(part, depth + 1)).collect::<Vec<_>>());
        }
        DeclaredType::intersection(all)
    }

    fn by_type(&mut self, fields: &'s Map<String, Value>, depth: usize) -> DeclaredType {
        let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
        let types: Vec<&str> = match fields.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ if has(&["properties", "required", "patternProperties", "additionalProperties"]) => vec!["object"],
            _ if has(&["items", "prefixItems"]) => vec!["array"],
            _ => return DeclaredType::Unknown,
        };
        let mut choices = Vec::new();
        for one in types {
            choices.push(match one {
                "integer" | "number" => DeclaredType::One("number".to_owned()),
                "string" | "boolean" | "null" => DeclaredType::One(one.to_owned()),
                "object" => DeclaredType::One(self.object(fields, depth)),
                "array" => DeclaredType::One(self.array(fields, depth)),
                _ => DeclaredType::Unknown,
            });
        }
        DeclaredType::union(choices)
    }

    fn object(&mut self, fields: &'s Map<String, Value>, depth: usize) -> String {
        let named = fields.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = match fields.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let margin = "  ".repeat(depth + 1);
        let mut members = Vec::new();
        for (name, schema) in named.into_iter().flatten() {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            let of = self.type_of(schema, depth + 1);
            members.push(format!("{}{margin}{}{mark}: {};\n", doc_comment(schema, depth + 1), key(name), of.text()));
        }
        let is_named = |name: &str| named.is_some_and(|named| named.contains_key(name));
        let unnamed: BTreeSet<&str> = required.into_iter().filter(|name| !is_named(name)).collect();
        members.extend(unnamed.into_iter().map(|name| format!("{margin}{}: unknown;\n", key(name))));
        if members.is_empty() {
            return format!("{{ [key: string]: {} }}", self.other_members(fields, depth).text());
        }
        // An index signature must cover the named members too.
        if states_others(fields) {
            members.push(format!("{margin}[key: string]: unknown;\n"));
        }
        format!("{{\n{}{}}}", members.concat(), "  ".repeat(depth))
    }

    /// The type of the members that are not in `properties`.
    fn other_members(&mut self, fields: &'s Map<String, Value>, depth: usize) -> DeclaredType {
        let mut choices = Vec::new();
        if let Some(Value::Object(patterns)) = fields.get("patternProperties") {
            choices.extend(patterns.values().map(|schema| self.type_of(schema, depth + 1)).collect::<Vec<_>>());
        }
        match fields.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(schema) => choices.push(self.type_of(schema, depth + 1)),
            None => choices.push(DeclaredType::Unknown),
        }
        DeclaredType::union(choices)
    }

    fn array(&mut self, fields: &'s Map<String, Value>, depth: usize) -> String {
        let rest = match fields.get("items") {
            Some(Value::Bool(false)) => None,
            Some(schema) => Some(self.type_of(schema, depth + 1)),
            None => Some(DeclaredType::Unknown),
        };
        let count = |name: &str| fields.get(name).and_then(Value::as_u64);
        let Some(Value::Array(first)) = fields.get("prefixItems") else {
            return rest.map_or_else(|| "[]".to_owned(), |rest| format!("Array<{}>", rest.text()));
        };
        let required = count("minItems").unwrap_or(0);
        let mut items = Vec::new();
        for (at, schema) in first.iter().enumerate() {
            let of = self.type_of(schema, depth + 1);
            items.push(if (at as u64) < required { of.text() } else { format!("{}?", of.part()) });
        }
        let is_full = count("maxItems").is_some_and(|most| most <= first.len() as u64);
        items.extend(rest.filter(|_| !is_full).map(|rest| format!("...Array<{}>", rest.text())));
        format!("[{}]", items.join(", "))
    }

    fn reference(&mut self, reference: &str) -> DeclaredType {
        let Some(pointer) = pointer(reference) else { return DeclaredType::Unknown };
        let Some(target) = self.root.pointer(pointer) else { return DeclaredType::Unknown };
        let is_other_document = !pointer.is_empty() && target.get("$id").is_some();
        if is_other_document || is_circular(self.root, pointer) {
            return DeclaredType::Unknown;
        }
        if let Some(name) = self.names.get(pointer) {
            return DeclaredType::One(name.clone());
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let wanted = format!("{}{}", self.name, pascal_case(last));
        let name = unique(&wanted, |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        self.names.insert(pointer.to_owned(), name.clone());
        self.open.push_back((name.clone(), target));
        DeclaredType::One(name)
    }
}

/// Whether the schema itself says that there can be other members.
fn states_others(fields: &Map<String, Value>) -> bool {
    let is_stated = fields.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
    is_stated || fields.contains_key("patternProperties")
}

/// The JSON pointer of a reference inside of the document. Escaped URLs and anchors are not
/// followed.
fn pointer(reference: &str) -> Option<&str> {
    let pointer = reference.strip_prefix('#')?;
    ((pointer.is_empty() || pointer.starts_with('/')) && !pointer.contains('%')).then_some(pointer)
}

/// Whether a schema is one of its own alternatives or parts, which a type cannot be.
fn is_circular(root: &Value, start: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(at) = open.pop() {
        let mut direct = Vec::new();
        if let Some(schema) = root.pointer(at) {
            direct_references(schema, &mut direct);
        }
        for next in direct {
            if next == start {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

fn direct_references<'s>(schema: &'s Value, found: &mut Vec<&'s str>) {
    if let Some(Value::String(reference)) = schema.get("$ref") {
        found.extend(pointer(reference));
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(parts)) = schema.get(keyword) {
            for part in parts {
                direct_references(part, found);
            }
        }
    }
}

/// `read_file` and `read-file` are `ReadFile`. Characters other than ASCII letters and digits are
/// left out.
pub fn pascal_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let capitalized = words.map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    capitalized.collect()
}

/// The name itself, or with the first number from 2 that makes it free.
pub fn unique(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut number = 1_u64;
    let mut free = name.to_owned();
    while is_taken(&free) {
        number += 1;
        free = format!("{name}{number}");
    }
    free
}

/// A comment for editors; empty without a text.
pub(crate) fn comment(description: &str, depth: usize) -> String {
    text(description.lines().map(str::to_owned).collect(), depth)
}
