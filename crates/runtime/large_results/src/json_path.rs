//! Paths in a JSON document.

use serde::{Deserialize, Serialize};

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JsonPathStep {
    Index(usize),
    Key(String),
}

/// The path as a JSONPath (RFC 9535), in dot notation if the key allows it.
pub fn written(path: &[JsonPathStep]) -> String {
    use std::fmt::Write;
    let mut text = String::from("$");
    for step in path {
        // Writing to a String cannot fail.
        let _ = match step {
            JsonPathStep::Index(index) => write!(text, "[{index}]"),
            JsonPathStep::Key(key) if is_plain(key) => write!(text, ".{key}"),
            JsonPathStep::Key(key) => {
                let mut quoted = String::new();
                for character in key.chars() {
                    match character {
                        '\'' | '\\' => quoted.extend(['\\', character]),
                        control if control.is_control() && u32::from(control) < 0x20 => {
                            let _ = write!(quoted, "\\u{:04x}", u32::from(control));
                        }
                        other => quoted.push(other),
                    }
                }
                write!(text, "['{quoted}']")
            }
        };
    }
    text
}

fn is_plain(key: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    key.starts_with(letter) && key.chars().all(|c| letter(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_paths_parse_to_the_same_path() {
        let keys = ["name", "with blank", "it's", "back\\slash", "line\nbreak", "ünicode", "", "7"];
        for key in keys {
            let document = serde_json::json!([{key: 1}]);
            let path = written(&[JsonPathStep::Index(0), JsonPathStep::Key(key.into())]);
            let read = serde_json_path::JsonPath::parse(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!(read.query(&document).all(), [&serde_json::json!(1)], "{path}");
        }
    }
}
