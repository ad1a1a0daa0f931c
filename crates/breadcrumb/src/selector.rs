//! Which records somebody means: by tags, by schema, by what stands in the context. Every part must hold; a selector
//! without parts matches every record.

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::only_object::only_object;
use crate::{Event, Violations};

/// What the tag of a request id begins with.
const REQUEST_TAG: &str = "request:";
/// How many selectors an agent may have.
pub const MAX_SELECTORS: usize = 100;
/// The most bytes of a selector's conditions on the context, as JSON.
const MAX_CONDITION_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Selector {
    /// At least one of these tags (when the list is not empty).
    #[serde(default, deserialize_with = "absent_or_null", skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable)]
    pub any_tags: Vec<String>,
    /// All of these tags.
    #[serde(default, deserialize_with = "absent_or_null", skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable)]
    pub all_tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_name: Option<String>,
    #[serde(default, deserialize_with = "absent_or_null", skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable)]
    pub context_match: Vec<ContextMatch>,
}

only_object!(Selector);

/// A selector that an agent keeps: its event streams carry what one of its selectors means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SelectorSubscription {
    pub id: Uuid,
    pub owner_id: Uuid,
    pub agent_id: Uuid,
    pub selector: Selector,
    pub created_at: DateTime<Utc>,
}

/// One condition on the context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ContextMatch {
    /// `$.a.b`, `$.items[0].name`.
    #[schema(value_type = String)]
    pub path: ContextPath,
    pub op: MatchOp,
    /// What the operator compares with. `exists` takes `true` (the default) or `false`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub value: Value,
}

only_object!(ContextMatch);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchOp {
    /// The path is there and equals the value (numbers by amount: 1 equals 1.0).
    Eq,
    /// Not `eq`: also true where the path is missing.
    Ne,
    /// Both are numbers or both are strings, and the record's is greater (strings by code point).
    Gt,
    /// As `gt`, or equal.
    Gte,
    Lt,
    /// As `lt`, or equal.
    Lte,
    /// The path is an array with this element, or a string with this substring.
    Contains,
    /// `contains` for at least one element of the value, which is an array.
    ContainsAny,
    /// The path is there (also when it is null); with `false`: it is not there.
    Exists,
}

/// A path into a context: `$`, then `.key` or `[index]` steps. Keys have no `.`, `[` or `]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContextPath {
    steps: Vec<String>,
    text: String,
}

impl TryFrom<String> for ContextPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no path; write $.key, $.key.key or $.key[0]");
        let mut rest = text.strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(inner) = rest.strip_prefix('[') {
                let (index, after) = inner.split_once(']').ok_or_else(wrong)?;
                if index.is_empty() || index.len() > 9 || !index.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(wrong());
                }
                (index, after)
            } else {
                let inner = rest.strip_prefix('.').ok_or_else(wrong)?;
                inner.split_at(inner.find(['.', '[']).unwrap_or(inner.len()))
            };
            if step.is_empty() || step.contains(']') || step.contains('\0') {
                return Err(wrong());
            }
            steps.push(step.to_owned());
            rest = after;
        }
        if steps.is_empty() || steps.len() > 32 {
            return Err(wrong());
        }
        Ok(Self { steps, text })
    }
}

impl From<ContextPath> for String {
    fn from(path: ContextPath) -> Self {
        path.text
    }
}

impl std::fmt::Display for ContextPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl ContextPath {
    /// Keys and array indexes (in decimal), from the root: the form Postgres' `#>` takes.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// The value at this path. On an array a step is an index, on an object a key.
    pub fn find<'v>(&self, context: &'v Map<String, Value>) -> Option<&'v Value> {
        let (first, rest) = self.steps.split_first()?;
        rest.iter().try_fold(context.get(first)?, |value, step| match value {
            Value::Object(entries) => entries.get(step),
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }
}

impl Selector {
    /// Whether a record with these properties is meant.
    pub fn matches(&self, tags: &[String], schema_name: Option<&str>, context: &Map<String, Value>) -> bool {
        (self.any_tags.is_empty() || self.any_tags.iter().any(|tag| tags.contains(tag)))
            && self.all_tags.iter().all(|tag| tags.contains(tag))
            && self.schema_name.as_deref().is_none_or(|name| schema_name == Some(name))
            && self.context_match.iter().all(|condition| condition.holds(context))
    }

    /// Whether the event is of a record that is meant.
    pub fn means(&self, event: &Event) -> bool {
        self.matches(&event.tags, event.schema_name.as_deref(), &event.context)
    }

    /// Whether it asks for what belongs to a request id: by the tag `request:<id>`, or by `$.request_id`. Of responses, a
    /// store then gives only those to the agent's own requests, since other agents may use the same request id.
    pub fn names_request(&self) -> bool {
        let is_request_tag = |tag: &String| tag.starts_with(REQUEST_TAG);
        self.any_tags.iter().chain(&self.all_tags).any(is_request_tag)
            || self.context_match.iter().any(|one| *one.path.steps() == ["request_id"])
    }

    /// A selector without parts means every record.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        for (field, tags) in [("any_tags", &self.any_tags), ("all_tags", &self.all_tags)] {
            if tags.len() > 100 {
                found.add(field, format!("has {} entries; at most 100 are allowed", tags.len()));
            }
            for (index, tag) in tags.iter().enumerate() {
                found.text(&format!("{field}[{index}]"), tag, 200);
            }
        }
        if let Some(name) = &self.schema_name {
            found.text("schema_name", name, 200);
        }
        if self.context_match.len() > 32 {
            found.add("context_match", "has more than 32 conditions");
        }
        for (index, condition) in self.context_match.iter().enumerate() {
            condition.check(&format!("context_match[{index}].value"), &mut found);
        }
        let bytes: usize = self.context_match.iter().map(|condition| condition.value.to_string().len()).sum();
        if bytes > MAX_CONDITION_BYTES {
            found.add(
                "context_match",
                format!("has values of {bytes} bytes; at most {MAX_CONDITION_BYTES} are allowed"),
            );
        }
        found.into_result()
    }
}

impl ContextMatch {
    fn check(&self, field: &str, found: &mut Violations) {
        found.json(field, &self.value);
        match self.op {
            MatchOp::Gt | MatchOp::Gte | MatchOp::Lt | MatchOp::Lte
                if !self.value.is_number() && !self.value.is_string() =>
            {
                found.add(field, "must be a number or a string for gt, gte, lt and lte");
            }
            MatchOp::ContainsAny if !self.value.is_array() => {
                found.add(field, "must be an array for contains_any");
            }
            MatchOp::Exists if !self.value.is_boolean() && !self.value.is_null() => {
                found.add(field, "must be true, false or absent for exists");
            }
            _ => {}
        }
    }

    /// Whether the condition holds for this context.
    pub fn holds(&self, context: &Map<String, Value>) -> bool {
        let there = self.path.find(context);
        match self.op {
            MatchOp::Exists => there.is_some() == self.value.as_bool().unwrap_or(true),
            MatchOp::Eq => there.is_some_and(|value| same(value, &self.value)),
            MatchOp::Ne => !there.is_some_and(|value| same(value, &self.value)),
            MatchOp::Gt => self.is_in_order(there, Ordering::is_gt),
            MatchOp::Gte => self.is_in_order(there, Ordering::is_ge),
            MatchOp::Lt => self.is_in_order(there, Ordering::is_lt),
            MatchOp::Lte => self.is_in_order(there, Ordering::is_le),
            MatchOp::Contains => there.is_some_and(|value| contains(value, &self.value)),
            MatchOp::ContainsAny => there.is_some_and(|value| {
                self.value.as_array().is_some_and(|wanted| wanted.iter().any(|one| contains(value, one)))
            }),
        }
    }
}

impl ContextMatch {
    fn is_in_order(&self, there: Option<&Value>, wanted: fn(Ordering) -> bool) -> bool {
        there.and_then(|value| order(value, &self.value)).is_some_and(wanted)
    }
}

/// RCRT's clients write `null` for what they leave out.
fn absent_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(reader: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

/// JSON equality as Postgres' jsonb has it: numbers by amount, objects without order.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => amounts(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => amounts(a, b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// The order of two numbers by their exact decimal amounts, as Postgres' numeric has it.
fn amounts(left: &Number, right: &Number) -> Option<Ordering> {
    match (integer(left), integer(right)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => Some(beside(a, right.as_f64()?)),
        (None, Some(b)) => Some(beside(b, left.as_f64()?).reverse()),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// An integer beside a float, which means the shortest decimal that reads back as it: what stands in its JSON text.
fn beside(integer: i128, float: f64) -> Ordering {
    let text = float.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    match whole.parse::<i128>() {
        Ok(whole) if fraction.bytes().all(|digit| digit == b'0') => integer.cmp(&whole),
        Ok(whole) => integer.cmp(&whole).then(if float > 0.0 { Ordering::Less } else { Ordering::Greater }),
        Err(_) if float > 0.0 => Ordering::Less,
        Err(_) => Ordering::Greater,
    }
}

fn contains(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Array(items), _) => items.iter().any(|item| same(item, wanted)),
        (Value::String(text), Value::String(part)) => text.contains(part),
        _ => false,
    }
}
