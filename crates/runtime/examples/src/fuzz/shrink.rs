//! Smaller values than one that fails.

use serde_json::{Map, Value, json};

/// The most parts of a list or an object that are tried one by one.
const MAX_PARTS: usize = 20;

/// Values that are simpler than this one, the simplest first. Each has less of something, so that a
/// chain of them ends.
pub(crate) fn smaller(value: &Value) -> Vec<Value> {
    match value {
        Value::Null | Value::Bool(false) => Vec::new(),
        Value::Bool(true) => vec![json!(false)],
        Value::Number(number) => {
            let Some(amount) = number.as_f64().filter(|amount| *amount != 0.0) else { return Vec::new() };
            let mut found = vec![json!(0)];
            if amount.fract() != 0.0 {
                found.push(json!(amount.trunc() as i64));
            } else if amount.abs() > 1.0 {
                found.extend([json!((amount / 2.0).trunc() as i64), json!((amount - amount.signum()) as i64)]);
            }
            // Beyond the integers that are exact, the result would not be nearer to 0.
            found.retain(|less| less.as_f64().is_some_and(|less| less.abs() < amount.abs()));
            found
        }
        Value::String(text) => texts(text),
        Value::Array(items) => lists(items),
        Value::Object(fields) => objects(fields),
    }
}

fn texts(text: &str) -> Vec<Value> {
    let characters: Vec<char> = text.chars().collect();
    let count = characters.len();
    if count == 0 {
        return Vec::new();
    }
    let part = |from: usize, to: usize| json!(characters[from..to].iter().collect::<String>());
    let mut found = vec![json!("")];
    if count > 1 {
        found.extend([part(0, count / 2), part(count / 2, count), part(0, count - 1), part(1, count)]);
    }
    // `a` is the simplest character; a text of them is not made simpler by replacing one.
    if let Some(at) = characters.iter().position(|c| *c != 'a') {
        let mut replaced = characters;
        replaced[at] = 'a';
        found.push(json!(replaced.iter().collect::<String>()));
    }
    found
}

fn lists(items: &[Value]) -> Vec<Value> {
    let mut found = Vec::new();
    if !items.is_empty() {
        found.push(json!([]));
    }
    if items.len() > 2 {
        found.extend([json!(items[..items.len() / 2]), json!(items[items.len() / 2..])]);
    }
    for at in (0..items.len()).take(MAX_PARTS) {
        let mut fewer = items.to_vec();
        fewer.remove(at);
        found.push(Value::Array(fewer));
    }
    for (at, item) in items.iter().enumerate().take(MAX_PARTS) {
        found.extend(smaller(item).into_iter().map(|less| {
            let mut items = items.to_vec();
            items[at] = less;
            Value::Array(items)
        }));
    }
    found
}

fn objects(fields: &Map<String, Value>) -> Vec<Value> {
    let mut found = Vec::new();
    for name in fields.keys().take(MAX_PARTS) {
        let mut fewer = fields.clone();
        fewer.shift_remove(name);
        found.push(Value::Object(fewer));
    }
    for (name, value) in fields.iter().take(MAX_PARTS) {
        found.extend(smaller(value).into_iter().map(|less| {
            let mut fields = fields.clone();
            fields.insert(name.clone(), less);
            Value::Object(fields)
        }));
    }
    found
}
