//! The `oneOf` and `anyOf` keywords by which a schema requires one of some properties, so that a
//! message can name them: `{"oneOf": [{"required": ["seconds"]}, {"required": ["ms"]}]}`.

use std::collections::HashMap;

use serde_json::Value;

/// The most such keywords of one schema.
const MOST: usize = 100;

/// The names of the properties, by the place of the keyword in the schema.
#[derive(Debug, Default)]
pub(crate) struct Alternatives(HashMap<String, String>);

impl Alternatives {
    pub fn of(schema: &Value) -> Self {
        let mut found = HashMap::new();
        let mut open = vec![(String::new(), schema)];
        while let Some((pointer, value)) = open.pop() {
            if found.len() >= MOST {
                break;
            }
            match value {
                Value::Object(fields) => {
                    for keyword in ["oneOf", "anyOf"] {
                        if let Some(names) = fields.get(keyword).and_then(names) {
                            found.insert(format!("{pointer}/{keyword}"), names);
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
        Self(found)
    }

    /// The names as text, such as `seconds or ms`.
    pub fn at(&self, pointer: &str) -> Option<&str> {
        self.0.get(pointer).map(String::as_str)
    }
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
