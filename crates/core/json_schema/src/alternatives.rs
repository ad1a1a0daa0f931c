//! The names of properties that messages suggest: those of which `oneOf` or `anyOf` requires one,
//! as in `{"oneOf": [{"required": ["seconds"]}, {"required": ["ms"]}]}`, and those that
//! `additionalProperties: false` allows.

use std::collections::HashMap;

use rcrt_breadcrumb::intended_field;
use serde_json::{Map, Value};

/// The most such keywords of one schema.
const MOST: usize = 100;

/// The most properties beside one `additionalProperties`, and the most bytes of each name, that are
/// compared with a name that is not allowed.
const MOST_DECLARED: usize = 20;
const LONGEST_DECLARED: usize = 40;

/// The names of the properties, by the place of the keyword in the schema.
#[derive(Debug, Default)]
pub(crate) struct Alternatives {
    required: HashMap<String, String>,
    declared: HashMap<String, Vec<String>>,
}

impl Alternatives {
    pub fn of(schema: &Value) -> Self {
        let mut found = Self::default();
        let mut open = vec![(String::new(), schema)];
        while let Some((pointer, value)) = open.pop() {
            if found.required.len() + found.declared.len() >= MOST {
                break;
            }
            match value {
                Value::Object(fields) => {
                    for keyword in ["oneOf", "anyOf"] {
                        if let Some(names) = fields.get(keyword).and_then(names) {
                            found.required.insert(format!("{pointer}/{keyword}"), names);
                        }
                    }
                    for keyword in ["additionalProperties", "unevaluatedProperties"] {
                        if fields.get(keyword) == Some(&Value::Bool(false)) {
                            found.declared.insert(format!("{pointer}/{keyword}"), declared(fields));
                        }
                    }
                    open.extend(fields.iter().filter(|(_, value)| is_nested(value)).map(|(key, value)| {
                        (format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), value)
                    }));
                }
                Value::Array(items) => {
                    let nested = items.iter().enumerate().filter(|(_, value)| is_nested(value));
                    open.extend(nested.map(|(index, value)| (format!("{pointer}/{index}"), value)));
                }
                _ => {}
            }
        }
        found
    }

    /// The names as text, such as `seconds or ms`.
    pub fn at(&self, pointer: &str) -> Option<&str> {
        self.required.get(pointer).map(String::as_str)
    }

    /// The property that this name was probably meant to be.
    pub fn meant(&self, pointer: &str, name: &str) -> Option<&str> {
        intended_field(name, self.declared.get(pointer)?.iter().map(String::as_str))
    }
}

fn declared(fields: &Map<String, Value>) -> Vec<String> {
    let properties = fields.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(Map::keys).filter(|name| name.len() <= LONGEST_DECLARED);
    names.take(MOST_DECLARED).cloned().collect()
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn names(variants: &Value) -> Option<String> {
    let name = |variant: &Value| match variant.get("required")?.as_array()?.as_slice() {
        [Value::String(name)] => Some(name.clone()),
        _ => None,
    };
    let names: Vec<String> = variants.as_array()?.iter().map(name).collect::<Option<_>>()?;
    Some(names.join(" or "))
}
