//! A selector compiled for many records: parsed paths, and values in hash sets.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde_json::{Map, Value};

use crate::fuel::{Fuel, OutOfFuel};
use crate::value_set::{ValueSet, order, same};
use crate::{ContextMatch, Event, MatchOp, Selector, schema_names};

/// Matches records against one selector.
///
/// The cost of a match is counted in [`Fuel`] and grows with the sum of the record and the
/// selector, never with their product: values of `contains` and `contains_any` are looked up by
/// hash, and all substrings are searched at once.
#[derive(Debug)]
pub struct Matcher {
    any_tags: HashSet<String>,
    all_tags: Vec<String>,
    schema_name: Option<String>,
    exclude_runtime: bool,
    conditions: Vec<Condition>,
    names_request: bool,
}

#[derive(Debug)]
struct Condition {
    path: Vec<SelectorStep>,
    test: Test,
}

/// A key of an object, or an index of an array.
#[derive(Debug)]
struct SelectorStep {
    key: String,
    index: Option<usize>,
}

#[derive(Debug)]
enum Test {
    Exists(bool),
    Eq(Value),
    Ne(Value),
    Order(Value, fn(Ordering) -> bool),
    Contains(Wanted),
}

/// The values of `contains` and `contains_any`; one must be contained.
#[derive(Debug)]
struct Wanted {
    values: Vec<Value>,
    /// Built at the first lookup, by the caller whose fuel pays for it.
    set: OnceLock<ValueSet>,
    /// The strings among the values.
    texts: OnceLock<Option<AhoCorasick>>,
}

impl From<&Selector> for Matcher {
    fn from(selector: &Selector) -> Self {
        Self {
            any_tags: selector.any_tags.iter().cloned().collect(),
            all_tags: selector.all_tags.clone(),
            schema_name: selector.schema_name.clone(),
            exclude_runtime: selector.exclude_runtime,
            conditions: selector.context_match.iter().map(Condition::from).collect(),
            names_request: selector.names_request(),
        }
    }
}

impl Matcher {
    /// Whether a record with these properties matches.
    pub fn matches(
        &self,
        tags: &[String],
        schema_name: Option<&str>,
        context: &Map<String, Value>,
        fuel: &mut Fuel,
    ) -> Result<bool, OutOfFuel> {
        fuel.burn(1 + tags.len() * (self.all_tags.len() + usize::from(!self.any_tags.is_empty())))?;
        if self.schema_name.as_deref().is_some_and(|name| schema_name != Some(name))
            || self.exclude_runtime && schema_name.is_some_and(schema_names::is_of_runtime)
            || !(self.any_tags.is_empty() || tags.iter().any(|tag| self.any_tags.contains(tag)))
            || !self.all_tags.iter().all(|tag| tags.contains(tag))
        {
            return Ok(false);
        }
        for condition in &self.conditions {
            if !condition.holds(context, fuel)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// [`Selector::names_request`] of the selector.
    pub fn names_request(&self) -> bool {
        self.names_request
    }

    /// Whether the event's record matches.
    pub fn matches_event(&self, event: &Event, fuel: &mut Fuel) -> Result<bool, OutOfFuel> {
        self.matches(&event.tags, event.schema_name.as_deref(), &event.context, fuel)
    }
}

impl From<&ContextMatch> for Condition {
    fn from(condition: &ContextMatch) -> Self {
        let step = |step: &String| SelectorStep { key: step.clone(), index: step.parse().ok() };
        let value = || condition.value.clone();
        let test = match condition.op {
            MatchOp::Exists => Test::Exists(condition.value.as_bool().unwrap_or(true)),
            MatchOp::Eq => Test::Eq(value()),
            MatchOp::Ne => Test::Ne(value()),
            MatchOp::Gt => Test::Order(value(), Ordering::is_gt),
            MatchOp::Gte => Test::Order(value(), Ordering::is_ge),
            MatchOp::Lt => Test::Order(value(), Ordering::is_lt),
            MatchOp::Lte => Test::Order(value(), Ordering::is_le),
            MatchOp::Contains => Test::Contains(Wanted::new(vec![value()])),
            // Validation refuses a value that is not an array. Here it contains nothing.
            MatchOp::ContainsAny => {
                Test::Contains(Wanted::new(condition.value.as_array().cloned().unwrap_or_default()))
            }
        };
        Self { path: condition.path.steps().iter().map(step).collect(), test }
    }
}

impl Condition {
    fn holds(&self, context: &Map<String, Value>, fuel: &mut Fuel) -> Result<bool, OutOfFuel> {
        fuel.burn(self.path.len())?;
        let there = self.find(context);
        let Some(value) = there else {
            return Ok(matches!(&self.test, Test::Exists(false) | Test::Ne(_)));
        };
        match &self.test {
            Test::Exists(wanted) => Ok(*wanted),
            Test::Eq(wanted) => is_same(value, wanted, fuel),
            Test::Ne(wanted) => Ok(!is_same(value, wanted, fuel)?),
            Test::Order(wanted, is_wanted) => {
                fuel.burn_for(wanted)?;
                Ok(order(value, wanted).is_some_and(is_wanted))
            }
            Test::Contains(wanted) => wanted.is_in(value, fuel),
        }
    }

    fn find<'v>(&self, context: &'v Map<String, Value>) -> Option<&'v Value> {
        let (first, rest) = self.path.split_first()?;
        rest.iter().try_fold(context.get(&first.key)?, |value, step| match value {
            Value::Object(entries) => entries.get(&step.key),
            Value::Array(items) => items.get(step.index?),
            _ => None,
        })
    }
}

/// A comparison stops at the first difference, so it costs no more than the smaller value.
fn is_same(value: &Value, wanted: &Value, fuel: &mut Fuel) -> Result<bool, OutOfFuel> {
    fuel.burn_for(wanted)?;
    Ok(same(value, wanted))
}

impl Wanted {
    fn new(values: Vec<Value>) -> Self {
        Self { values, set: OnceLock::new(), texts: OnceLock::new() }
    }

    /// Whether the array or the text contains one of the values.
    fn is_in(&self, value: &Value, fuel: &mut Fuel) -> Result<bool, OutOfFuel> {
        match value {
            Value::Array(items) => {
                let set = self.set(fuel)?;
                for item in items {
                    fuel.burn_for(item)?;
                    if set.contains(item) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::String(text) => match self.texts(fuel)? {
                Some(texts) => {
                    fuel.burn_for_text(text)?;
                    Ok(texts.is_match(text))
                }
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    fn set(&self, fuel: &mut Fuel) -> Result<&ValueSet, OutOfFuel> {
        if let Some(set) = self.set.get() {
            return Ok(set);
        }
        self.values.iter().try_for_each(|value| fuel.burn_for(value))?;
        Ok(self.set.get_or_init(|| self.values.iter().collect()))
    }

    fn texts(&self, fuel: &mut Fuel) -> Result<Option<&AhoCorasick>, OutOfFuel> {
        if let Some(texts) = self.texts.get() {
            return Ok(texts.as_ref());
        }
        let texts: Vec<&str> = self.values.iter().filter_map(Value::as_str).collect();
        fuel.burn(1 + texts.iter().map(|text| 1 + text.len()).sum::<usize>())?;
        let build = || {
            let mut builder = AhoCorasick::builder();
            // Building fails only from 2^31 states on, and the values have fewer bytes.
            let built = builder.kind(Some(AhoCorasickKind::ContiguousNFA)).build(&texts).ok();
            built.filter(|_| !texts.is_empty())
        };
        Ok(self.texts.get_or_init(build).as_ref())
    }
}
