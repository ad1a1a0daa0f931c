//! JSON that a tool returns as text: what a program printed, or what is below the header of a
//! fetched page.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// The separator between a page's header and its content.
const CONTENT: &str = "\n\n--- Content ---\n";
/// From here on, not every integer can be represented.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The object or array that the whole text represents. `None` for other text, and if parsing would
/// lose something: a duplicate key, or an integer with too many digits. A page of JSON becomes the
/// document `{"header", "content"}`.
pub(crate) fn document(text: &str) -> Option<Value> {
    if let Some(whole) = read(text) {
        return Some(whole);
    }
    let (header, content) = text.split_once(CONTENT).filter(|_| text.starts_with("URL: "))?;
    Some(json!({"header": header, "content": read(content)?}))
}

fn read(text: &str) -> Option<Value> {
    text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str::<Exact>(text).ok().map(|exact| exact.0))?
}

/// A value that was parsed without loss.
struct Exact(Value);

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading).map(Self)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON that can be parsed without loss")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        // It may have been written as an integer whose digits all matter.
        if value.abs() >= LARGEST_WHOLE { Err(E::custom("a number is too large")) } else { Ok(value.into()) }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(Exact(item)) = items.next_element()? {
            read.push(item);
        }
        Ok(read.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some((key, Exact(value))) = members.next_entry::<String, Exact>()? {
            if read.insert(key, value).is_some() {
                return Err(de::Error::custom("a key is duplicated"));
            }
        }
        Ok(read.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_document_if_it_parses_without_loss() {
        assert_eq!(
            document(" {\"b\": [1, -2, 1.5, null, true, \"\\u00e4\"]}\n").unwrap().to_string(),
            "{\"b\":[1,-2,1.5,null,true,\"ä\"]}"
        );
        assert_eq!(document("URL: x\n\n--- Content ---\n[1]"), Some(json!({"header": "URL: x", "content": [1]})));
        for text in [
            "",
            "5",
            "\"text\"",
            "{",
            "[1] and more",
            "[1]\n[2]",
            "[info] started",
            "{\"a\": 1, \"a\": 2}",
            "[123456789012345678901234567890]",
            "see:\n\n--- Content ---\n[1]",
            "URL: x\n\n--- Content ---\ntext",
        ] {
            assert_eq!(document(text), None, "{text}");
        }
    }
}
