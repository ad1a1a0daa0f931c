//! Rewrites examples in the JSON file of a tool.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use rcrt_breadcrumb::Example;
use serde_json::Value;

/// The fields that a run can change. Others keep their text and their order.
const FIELDS: [&str; 6] = ["output", "error", "http", "breadcrumbs", "writes", "now"];

/// Writes these examples, by their position, into the file.
pub fn rewrite(path: &Path, examples: &BTreeMap<usize, Example>) -> anyhow::Result<()> {
    let unwritable = || format!("the examples of {} cannot be rewritten", path.display());
    let text = std::fs::read_to_string(path).with_context(unwritable)?;
    let mut record: Value = serde_json::from_str(&text).with_context(unwritable)?;
    for (at, example) in examples {
        let place = record.pointer_mut(&format!("/context/examples/{at}")).and_then(Value::as_object_mut);
        let old = place.with_context(|| format!("{} has no example {at}", path.display()))?;
        let Value::Object(new) = serde_json::to_value(example)? else { continue };
        for field in FIELDS {
            match new.get(field) {
                Some(value) => drop(old.insert(field.to_owned(), value.clone())),
                None => drop(old.shift_remove(field)),
            }
        }
    }
    let text = serde_json::to_string_pretty(&record).with_context(unwritable)? + "\n";
    std::fs::write(path, text).with_context(unwritable)
}
