//! Compares a value with an expected one, which can contain matchers: objects with one key that
//! stand for any value of a kind.
//!
//! - `{"$any": true}`: any value.
//! - `{"$type": "string"}`: any value of a type of JSON Schema.
//! - `{"$regex": "^a+$"}`: a text in which the pattern is found, as `pattern` in JSON Schema.
//! - `{"$near": [3.14, 0.01]}`: a number that differs from the first by at most the second.
//! - `{"$literal": …}`: exactly this value, for one that would be read as a matcher.

use rcrt_breadcrumb::{Violation, Violations};
use rcrt_json_schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The most differences that are reported for one value.
pub const MAX_DIFFERENCES: usize = 20;
/// The most characters of a value that a difference shows.
const MAX_SHOWN: usize = 500;
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
const MATCHERS: &str = "$any, $type, $regex, $near and $literal";

/// One place where a value is not as expected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// `$`, or `$.items[0].name`.
    pub path: String,
    /// What was expected there, matchers included. Absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// Absent if there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
    pub message: String,
}

/// An object with one key, which is one of the matchers.
enum Matcher<'v> {
    Any,
    Type(&'v str),
    Regex(&'v str),
    Near(f64, f64),
    Literal(&'v Value),
}

impl<'v> Matcher<'v> {
    /// `None` if the value is not a matcher. The error says how a matcher is written.
    fn read(value: &'v Value) -> Option<Result<Self, String>> {
        let entries = value.as_object().filter(|entries| entries.len() == 1)?;
        let (key, operand) = entries.iter().next()?;
        let matcher = match key.as_str() {
            "$any" => (*operand == Value::Bool(true)).then_some(Self::Any).ok_or("$any takes true"),
            "$type" => operand
                .as_str()
                .filter(|name| TYPES.contains(name))
                .map(Self::Type)
                .ok_or("$type takes string, number, integer, boolean, object, array or null"),
            "$regex" => operand.as_str().map(Self::Regex).ok_or("$regex takes a pattern, a text"),
            "$near" => near(operand).ok_or("$near takes [number, largest difference]"),
            "$literal" => Ok(Self::Literal(operand)),
            _ => return None,
        };
        Some(matcher.map_err(str::to_owned))
    }
}

fn near<'v>(operand: &Value) -> Option<Matcher<'v>> {
    let [number, most] = operand.as_array()?.as_slice() else { return None };
    let most = most.as_f64().filter(|most| *most >= 0.0)?;
    Some(Matcher::Near(number.as_f64()?, most))
}

/// Checks that every matcher in an expected value is written as it must be. A place starts with
/// `root`.
pub fn check_expected(root: &str, expected: &Value) -> Vec<Violation> {
    let mut found = Violations::default();
    check_at(root, expected, &mut found);
    found.0
}

fn check_at(place: &str, expected: &Value, found: &mut Violations) {
    match Matcher::read(expected) {
        Some(Ok(Matcher::Regex(pattern))) => {
            if let Err(violations) = pattern_of(pattern) {
                let why = violations.0.first().map(|violation| violation.message.clone()).unwrap_or_default();
                found.add(place, format!("$regex {pattern:?} {why}"));
            }
            return;
        }
        Some(Ok(_)) => return,
        Some(Err(message)) => return found.add(place, message),
        None => {}
    }
    match expected {
        Value::Object(entries) => {
            if let [key] = entries.keys().collect::<Vec<_>>()[..]
                && key.starts_with('$')
            {
                let message =
                    format!("{key} is not a matcher; expected {MATCHERS}. Wrap a literal object: {{\"$literal\": …}}");
                return found.add(place, message);
            }
            for (key, value) in entries {
                check_at(&format!("{place}.{key}"), value, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_at(&format!("{place}[{index}]"), item, found);
            }
        }
        _ => {}
    }
}

/// Whether an expected value contains matchers, so that it is not itself a value of its schema.
pub fn has_matchers(expected: &Value) -> bool {
    Matcher::read(expected).is_some()
        || match expected {
            Value::Object(entries) => entries.values().any(has_matchers),
            Value::Array(items) => items.iter().any(has_matchers),
            _ => false,
        }
}

/// The differences between a value and what is expected, at most [`MAX_DIFFERENCES`]. Numbers are
/// compared by amount: 1 equals 1.0.
pub fn differences(expected: &Value, actual: &Value) -> Vec<Difference> {
    let mut found = Found(Vec::new());
    found.compare("$", expected, actual);
    found.0
}

struct Found(Vec<Difference>);

impl Found {
    fn add(&mut self, path: &str, expected: Option<&Value>, actual: Option<&Value>, message: impl Into<String>) {
        if self.0.len() < MAX_DIFFERENCES {
            self.0.push(Difference {
                path: path.to_owned(),
                expected: expected.map(shown),
                actual: actual.map(shown),
                message: message.into(),
            });
        }
    }

    fn compare(&mut self, path: &str, expected: &Value, actual: &Value) {
        match Matcher::read(expected) {
            Some(Ok(Matcher::Literal(literal))) => return self.compare_literally(path, literal, actual, false),
            Some(Ok(matcher)) => {
                if let Some(message) = mismatch(&matcher, actual) {
                    self.add(path, Some(expected), Some(actual), message);
                }
                return;
            }
            Some(Err(message)) => return self.add(path, Some(expected), Some(actual), message),
            None => {}
        }
        self.compare_literally(path, expected, actual, true);
    }

    fn compare_literally(&mut self, path: &str, expected: &Value, actual: &Value, reads_matchers: bool) {
        match (expected, actual) {
            (Value::Object(expected), Value::Object(actual)) => {
                self.compare_entries(path, expected, actual, reads_matchers);
            }
            (Value::Array(expected), Value::Array(actual)) => {
                for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                    self.compare_inner(&format!("{path}[{index}]"), expected, actual, reads_matchers);
                }
                if expected.len() != actual.len() {
                    let items = if expected.len() == 1 { "item" } else { "items" };
                    let message = format!("the list must have {} {items}; it has {}", expected.len(), actual.len());
                    let first = expected.len().min(actual.len());
                    let place = format!("{path}[{first}]");
                    self.add(&place, expected.get(first), actual.get(first), message);
                }
            }
            (Value::Number(expected_number), Value::Number(actual_number)) => {
                if !is_same_number(expected_number, actual_number) {
                    self.add(path, Some(expected), Some(actual), "is a different number");
                }
            }
            _ if expected == actual => {}
            _ if type_of(expected) == type_of(actual) => {
                self.add(path, Some(expected), Some(actual), format!("is a different {}", type_of(actual)));
            }
            _ => {
                let message = format!("has the type {}; expected {}", type_of(actual), type_of(expected));
                self.add(path, Some(expected), Some(actual), message);
            }
        }
    }

    fn compare_inner(&mut self, path: &str, expected: &Value, actual: &Value, reads_matchers: bool) {
        if reads_matchers {
            self.compare(path, expected, actual);
        } else {
            self.compare_literally(path, expected, actual, false);
        }
    }

    fn compare_entries(
        &mut self,
        path: &str,
        expected: &Map<String, Value>,
        actual: &Map<String, Value>,
        reads_matchers: bool,
    ) {
        for (key, value) in expected {
            let place = format!("{path}.{key}");
            match actual.get(key) {
                Some(actual) => self.compare_inner(&place, value, actual, reads_matchers),
                None => self.add(&place, Some(value), None, "is missing"),
            }
        }
        for (key, value) in actual.iter().filter(|(key, _)| !expected.contains_key(*key)) {
            self.add(&format!("{path}.{key}"), None, Some(value), "is not expected");
        }
    }
}

/// Why the value does not match; `None` if it does.
fn mismatch(matcher: &Matcher<'_>, actual: &Value) -> Option<String> {
    match matcher {
        Matcher::Any | Matcher::Literal(_) => None,
        Matcher::Type(name) => {
            let is_of_type = match *name {
                "integer" => actual.is_i64() || actual.is_u64() || actual.as_f64().is_some_and(|n| n.fract() == 0.0),
                name => type_of(actual) == name,
            };
            (!is_of_type).then(|| format!("has the type {}; expected {name}", type_of(actual)))
        }
        Matcher::Regex(pattern) => {
            let matches = pattern_of(pattern).is_ok_and(|schema| schema.check(actual).is_empty());
            (!matches).then(|| format!("does not match {pattern:?}"))
        }
        Matcher::Near(number, most) => {
            // 3.13 is within 0.01 of 3.14, although the difference of the two doubles is larger.
            let rounding = |actual: f64| 4.0 * f64::EPSILON * actual.abs().max(number.abs());
            let is_near = actual.as_f64().is_some_and(|actual| (actual - number).abs() <= *most + rounding(actual));
            (!is_near).then(|| format!("is not within {most} of {number}"))
        }
    }
}

fn pattern_of(pattern: &str) -> Result<Schema, Violations> {
    Schema::compile(&json!({"type": "string", "pattern": pattern}))
}

fn is_same_number(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The value, or the start of its text if it is long.
fn shown(value: &Value) -> Value {
    let text = value.to_string();
    if text.chars().count() <= MAX_SHOWN {
        return value.clone();
    }
    let start: String = text.chars().take(MAX_SHOWN).collect();
    format!("{start}… ({} bytes of JSON)", text.len()).into()
}
