//! Includes, excludes and renames fields by path: `links`, `user.ssn`, `$.items[*].price`,
//! `context.links`.

use serde_json::{Map, Value};

/// The normalized form of a path, for comparison: without `$.`, and without wildcards, since arrays
/// are always traversed.
pub(super) fn plain(path: &str) -> String {
    let path = path.trim();
    let path = path.strip_prefix("$.").unwrap_or(path);
    path.replace("[*]", "").replace(".*", "")
}

/// The path, and the path without a leading `context.` (as in `context.links`). Both count, since a
/// context can have a field `context`.
pub(super) fn within_context(path: &str) -> impl Iterator<Item = &str> {
    std::iter::once(path).chain(path.strip_prefix("context."))
}

/// The context without these fields, including those in the items of arrays.
pub(super) fn without(context: &Map<String, Value>, paths: &[&str]) -> Map<String, Value> {
    let mut kept = Map::new();
    for (key, value) in context {
        if paths.contains(&key.as_str()) {
            continue;
        }
        let below = below(key, paths);
        kept.insert(key.clone(), if below.is_empty() { value.clone() } else { value_without(value, &below) });
    }
    kept
}

fn value_without(value: &Value, paths: &[&str]) -> Value {
    match value {
        Value::Object(entries) => Value::Object(without(entries, paths)),
        Value::Array(items) => items.iter().map(|item| value_without(item, paths)).collect(),
        other => other.clone(),
    }
}

/// The context with only these fields.
pub(super) fn only(context: &Map<String, Value>, paths: &[&str]) -> Map<String, Value> {
    let mut kept = Map::new();
    for (key, value) in context {
        if paths.contains(&key.as_str()) {
            kept.insert(key.clone(), value.clone());
            continue;
        }
        let below = below(key, paths);
        if let Some(value) = (!below.is_empty()).then(|| value_only(value, &below)).flatten() {
            kept.insert(key.clone(), value);
        }
    }
    kept
}

/// `None` if no path selects a part of the value.
fn value_only(value: &Value, paths: &[&str]) -> Option<Value> {
    match value {
        Value::Object(entries) => {
            let kept = only(entries, paths);
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => Some(items.iter().filter_map(|item| value_only(item, paths)).collect()),
        _ => None,
    }
}

/// The remainders of the paths that lead through this key.
fn below<'p>(key: &str, paths: &[&'p str]) -> Vec<&'p str> {
    paths.iter().filter_map(|path| path.strip_prefix(key)?.strip_prefix('.')).collect()
}

/// Renames the field at the path. Does nothing if a sibling already has that name.
pub(super) fn rename(context: &mut Map<String, Value>, path: &str, name: &str) {
    if context.contains_key(path) {
        if !context.contains_key(name) {
            let entries = std::mem::take(context).into_iter();
            *context = entries.map(|(key, value)| (if key == path { name.to_owned() } else { key }, value)).collect();
        }
        return;
    }
    for (key, value) in context.iter_mut() {
        if let Some(rest) = path.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('.')) {
            rename_in(value, rest, name);
        }
    }
}

fn rename_in(value: &mut Value, path: &str, name: &str) {
    match value {
        Value::Object(entries) => rename(entries, path, name),
        Value::Array(items) => items.iter_mut().for_each(|item| rename_in(item, path, name)),
        _ => {}
    }
}
