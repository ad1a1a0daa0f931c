//! Selectors: conditions on a record's tags, schema name and context. All conditions must match; a
//! selector without conditions matches every record.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Violations;
use crate::deserialize_from_object::deserialize_from_object;

/// The prefix of a tag with a request id.
const REQUEST_TAG: &str = "request:";
/// The most selectors of one agent.
pub const MAX_SELECTORS: usize = 100;
/// The most context conditions in one selector.
const MAX_CONDITIONS: usize = 32;
/// The most bytes of one condition's value, as JSON.
const MAX_VALUE_BYTES: usize = 16 * 1024;
/// The most bytes of all values of a selector's conditions, as JSON.
const MAX_CONDITION_BYTES: usize = 32 * 1024;
/// The most elements in the value of `contains_any`.
const MAX_ANY: usize = 1000;
/// The most bytes of a path.
const MAX_PATH_BYTES: usize = 1000;
/// The most steps of a path.
const MAX_STEPS: usize = 32;

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
    /// Not a record of the runtime: a tool, a guide, a call, an entry in working memory, a schedule
    /// or a definition of a schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclude_runtime: bool,
}

deserialize_from_object!(Selector);

/// A stored selector of an agent. Its event streams carry events that match one of its selectors.
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
    /// The operand. `exists` takes `true` (the default) or `false`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub value: Value,
}

deserialize_from_object!(ContextMatch);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchOp {
    /// The path exists and equals the value (numbers by amount: 1 equals 1.0).
    Eq,
    /// Not `eq`. Also true if the path does not exist.
    Ne,
    /// Both are numbers or both are strings, and the record's value is greater (strings by code
    /// point).
    Gt,
    /// Like `gt`, or equal.
    Gte,
    Lt,
    /// Like `lt`, or equal.
    Lte,
    /// The value at the path is an array with this element, or a string with this substring.
    Contains,
    /// `contains` holds for at least one element of the value, which is an array.
    ContainsAny,
    /// The path exists, even if its value is null. With `false`: it does not exist.
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
        let wrong = || format!("{text:?} is not a valid path; write $.key, $.key.key or $.key[0]");
        if text.len() > MAX_PATH_BYTES {
            return Err(format!("a path of {} bytes is too long; at most {MAX_PATH_BYTES} are allowed", text.len()));
        }
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
        if steps.is_empty() {
            return Err(wrong());
        }
        if steps.len() > MAX_STEPS {
            return Err(format!("a path of {} steps is too deep; at most {MAX_STEPS} are allowed", steps.len()));
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
    /// Keys and array indexes (in decimal), from the root: the form that Postgres' `#>` takes.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }
}

impl Selector {
    /// Whether the selector names a request id, by the tag `request:<id>` or by `$.request_id`. For
    /// such a selector a store returns responses to the agent's own requests only, because other
    /// agents may use the same request id.
    pub fn names_request(&self) -> bool {
        let is_request_tag = |tag: &String| tag.starts_with(REQUEST_TAG);
        self.any_tags.iter().chain(&self.all_tags).any(is_request_tag)
            || self.context_match.iter().any(|one| *one.path.steps() == ["request_id"])
    }

    /// A selector without conditions matches every record.
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
        if self.context_match.len() > MAX_CONDITIONS {
            let count = self.context_match.len();
            found.add("context_match", format!("has {count} conditions; at most {MAX_CONDITIONS} are allowed"));
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
        let bytes = self.value.to_string().len();
        if bytes > MAX_VALUE_BYTES {
            found.add(field, format!("is {bytes} bytes of JSON; at most {MAX_VALUE_BYTES} are allowed"));
        }
        match self.op {
            MatchOp::Gt | MatchOp::Gte | MatchOp::Lt | MatchOp::Lte
                if !self.value.is_number() && !self.value.is_string() =>
            {
                found.add(field, "must be a number or a string for gt, gte, lt and lte");
            }
            MatchOp::ContainsAny if !self.value.is_array() => {
                found.add(field, "must be an array for contains_any");
            }
            MatchOp::ContainsAny if self.value.as_array().is_some_and(|values| values.len() > MAX_ANY) => {
                let count = self.value.as_array().map_or(0, Vec::len);
                found.add(field, format!("has {count} elements; at most {MAX_ANY} are allowed"));
            }
            MatchOp::Exists if !self.value.is_boolean() && !self.value.is_null() => {
                found.add(field, "must be true, false or absent for exists");
            }
            _ => {}
        }
    }
}

/// RCRT's clients write `null` for absent fields.
fn absent_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(reader: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}
