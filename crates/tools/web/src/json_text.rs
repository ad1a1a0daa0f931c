//! Formats JSON text for reading. Numbers, the order of fields and repeated names do not change.

use serde::de::IgnoredAny;

/// Deeper JSON would be indented too far to read.
const MAX_DEPTH: usize = 64;

/// `None` if it is not JSON, is nested too deep, or is too long when formatted.
pub(crate) fn pretty(text: &str, most_bytes: usize) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut rest) = (0_usize, text.trim());
    while let Some(c) = rest.chars().next() {
        if out.len() > most_bytes || depth > MAX_DEPTH {
            return None;
        }
        let taken = match c {
            '"' => string(rest),
            '{' | '[' => {
                let inside = rest[1..].trim_start();
                if inside.starts_with(['}', ']']) {
                    out.push(c);
                    out.extend(inside.chars().next());
                    rest = inside[1..].trim_start();
                    continue;
                }
                depth += 1;
                out.push(c);
                new_line(&mut out, depth);
                1
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
                1
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
                1
            }
            ':' => {
                out.push_str(": ");
                1
            }
            c if c.is_whitespace() => c.len_utf8(),
            _ => rest.find([',', ':', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len()),
        };
        if !matches!(c, '{' | '[' | '}' | ']' | ',' | ':') && !c.is_whitespace() {
            out.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    Some(out)
}

/// The length in bytes of the string at the start of the text, including its quotes.
fn string(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn formatting_preserves_json_text() {
        let text = r#" {"b":1.10e2,"a":[1,{},[ ],12345678901234567890123,"x,\"}\\"],"b":null} "#;
        let laid_out = "{\n  \"b\": 1.10e2,\n  \"a\": [\n    1,\n    {},\n    [],\n    12345678901234567890123,\n    \"x,\\\"}\\\\\"\n  ],\n  \"b\": null\n}";
        assert_eq!(pretty(text, 10_000).unwrap(), laid_out);
        assert_eq!(pretty("3", 100).unwrap(), "3");
        assert_eq!(pretty("{\"a\":1", 100), None);
        assert_eq!(pretty(&"[".repeat(1_000_000), 1 << 30), None);
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        assert_eq!(pretty(&deep, 1 << 30), None);
        assert_eq!(pretty("[1,2,3]", 4), None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((".{0,6}", inner), 0..6)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn formatted_json_equals_serde_output(value in any_json()) {
            let laid_out = pretty(&value.to_string(), 1 << 30).unwrap();
            prop_assert_eq!(&laid_out, &serde_json::to_string_pretty(&value).unwrap());
        }
    }
}
