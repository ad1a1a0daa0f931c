//! Rewrites what an example expects to what its tool does.

use rcrt_breadcrumb::{Example, ExpectedFailure};
use rcrt_validate::expected::differences;
use serde_json::{Map, Value, json};

use crate::{ExampleReport, ExampleStatus};

/// The example with the result of its last run; `None` if nothing differs, or if the tool failed
/// where an output is expected, which an update must not hide. Matchers that match stay.
pub fn updated(example: &Example, report: &ExampleReport) -> Option<Example> {
    if report.status != ExampleStatus::Failed || report.reason.is_some() || report.differences.is_empty() {
        return None;
    }
    let actual = report.actual.as_ref()?;
    let mut updated = example.clone();
    match (&example.error, &example.output) {
        (Some(expected), _) => {
            let found: ExpectedFailure = serde_json::from_value(actual.get("error")?.clone()).ok()?;
            let message = expected.message.as_ref().zip(found.message).map(|(old, new)| merged(old, &new));
            updated.error = Some(ExpectedFailure { code: found.code, message });
        }
        (None, Some(expected)) => updated.output = Some(merged(expected, actual)),
        (None, None) => {}
    }
    if let Some(expected) = &example.writes {
        let writes = merged(&json!(expected), &json!(report.writes));
        updated.writes = writes.as_array().cloned();
    }
    (updated != *example).then_some(updated)
}

/// What is expected, with the actual value in each place that differs.
pub(crate) fn merged(expected: &Value, actual: &Value) -> Value {
    if differences(expected, actual).is_empty() {
        return expected.clone();
    }
    match (expected, actual) {
        (Value::Object(old), Value::Object(new)) if !is_matcher(old) => {
            let field = |(name, value): (&String, &Value)| {
                let value = old.get(name).map_or_else(|| exact(value), |old| merged(old, value));
                (name.clone(), value)
            };
            Value::Object(new.iter().map(field).collect())
        }
        (Value::Array(old), Value::Array(new)) => {
            let item =
                |(at, value): (usize, &Value)| old.get(at).map_or_else(|| exact(value), |old| merged(old, value));
            new.iter().enumerate().map(item).collect()
        }
        _ => exact(actual),
    }
}

/// The value as an example states it: what would be read as a matcher is marked as a value.
pub(crate) fn exact(value: &Value) -> Value {
    match value {
        Value::Object(fields) if is_matcher(fields) => json!({"$literal": value}),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), exact(value))).collect())
        }
        Value::Array(items) => items.iter().map(exact).collect(),
        other => other.clone(),
    }
}

fn is_matcher(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.keys().all(|name| name.starts_with('$'))
}
