//! How many bytes a value takes as compact JSON, without writing it.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// How many bytes are examined at once for what needs an escape.
const PART: usize = 64;

/// The length of the value's JSON text, as `serde_json` writes it.
pub fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(is_true) => 5 - usize::from(*is_true),
        Value::Number(number) => number_bytes(number),
        Value::String(text) => text_bytes(text),
        Value::Array(items) => 1 + items.len().max(1) + items.iter().map(json_bytes).sum::<usize>(),
        Value::Object(entries) => object_bytes(entries),
    }
}

/// [`json_bytes`] of an object.
pub fn object_bytes(entries: &Map<String, Value>) -> usize {
    let inner = entries.iter().map(|(key, value)| text_bytes(key) + 1 + json_bytes(value));
    1 + entries.len().max(1) + inner.sum::<usize>()
}

fn text_bytes(text: &str) -> usize {
    let mut bytes = 2 + text.len();
    for part in text.as_bytes().chunks(PART) {
        // Most parts need no escape, and the compiler turns this into a few instructions.
        let escaped: u8 = part.iter().map(|byte| u8::from(*byte < 0x20 || *byte == b'"' || *byte == b'\\')).sum();
        if escaped > 0 {
            bytes += part.iter().map(|byte| more_bytes(*byte)).sum::<usize>();
        }
    }
    bytes
}

/// How many bytes the escape of this one adds.
fn more_bytes(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r' => 1,
        0..0x20 => 5,
        _ => 0,
    }
}

fn number_bytes(number: &Number) -> usize {
    struct Counter(usize);

    impl std::fmt::Write for Counter {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }

    let mut counter = Counter(0);
    // Counting does not fail.
    let _ = write!(counter, "{number}");
    counter.0
}
