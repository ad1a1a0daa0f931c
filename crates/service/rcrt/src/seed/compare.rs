//! Compares a record with its file.

use rcrt_breadcrumb::{Breadcrumb, BreadcrumbChanges, CURATORS_TOOL_TAG, DRAFT_TAG, NewBreadcrumb};
use serde_json::Value;

use super::origin::is_version_tag;

/// Returns whether the record matches the file. Optional fields that the file does not set are
/// ignored.
pub fn has_same_content(file: &NewBreadcrumb, record: &Breadcrumb) -> bool {
    let context = Value::Object(file.context.clone());
    file.title == record.title
        && same_or_absent(file.description.as_ref(), record.description.as_ref())
        && same_or_absent(file.semantic_version.as_ref(), record.semantic_version.as_ref())
        && same_json(&context, &Value::Object(record.context.clone()))
        && same_tags(&file.tags, &record.tags)
        && file.schema_name == record.schema_name
        && file.llm_hints.as_ref().is_none_or(|hints| record.llm_hints.as_ref().is_some_and(|r| same_json(hints, r)))
        && file.visibility == record.visibility
        && file.sensitivity == record.sensitivity
        && same_or_absent(file.ttl.as_ref(), record.ttl.as_ref())
        && same_or_absent(file.ttl_type.as_ref(), record.ttl_type.as_ref())
        && file
            .ttl_config
            .as_ref()
            .is_none_or(|config| record.ttl_config.as_ref().is_some_and(|r| same_json(config, r)))
}

/// The changes that make a record match the file.
pub fn changes(file: &NewBreadcrumb) -> BreadcrumbChanges {
    BreadcrumbChanges {
        title: Some(file.title.clone()),
        description: file.description.clone(),
        semantic_version: file.semantic_version.clone(),
        context: Some(file.context.clone()),
        tags: Some(file.tags.clone()),
        schema_name: file.schema_name.clone(),
        llm_hints: file.llm_hints.clone(),
        visibility: Some(file.visibility),
        sensitivity: Some(file.sensitivity),
        ttl: file.ttl,
        ttl_type: file.ttl_type,
        ttl_config: file.ttl_config.clone(),
    }
}

fn same_or_absent<T: PartialEq>(file: Option<&T>, record: Option<&T>) -> bool {
    file.is_none() || file == record
}

pub(super) fn same_tags(one: &[String], other: &[String]) -> bool {
    // The store sets the first two, and the last is not in the file.
    let is_ignored = |tag: &String| tag == CURATORS_TOOL_TAG || tag == DRAFT_TAG || is_version_tag(tag);
    let are_in = |these: &[String], those: &[String]| these.iter().all(|tag| is_ignored(tag) || those.contains(tag));
    are_in(one, other) && are_in(other, one)
}

/// Equality after storage as JSON: objects are unordered, and numbers compare by value (Postgres
/// stores 1e2 as 100).
pub(super) fn same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_json(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same_json(value, other)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_compared_without_order_and_by_value() {
        assert!(same_json(&json!({"a": 1, "b": [1e2]}), &json!({"b": [100], "a": 1.0})));
        assert!(!same_json(&json!({"a": 1}), &json!({"a": 1, "b": null})));
        assert!(!same_json(&json!([1, 2]), &json!([2, 1])));
        assert!(!same_json(&json!(9_007_199_254_740_993_i64), &json!(9_007_199_254_740_992_i64)));
        assert!(!same_json(&json!("1"), &json!(1)));
    }
}
