//! A compiled schema.

use breadcrumb::{Violation, Violations};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::{cost, graph, message};

/// Violations told of one value, at most.
pub const MAX_VIOLATIONS: usize = 50;

/// Bytes of one compiled pattern and of its cache.
const PATTERN_BYTES: usize = 1024 * 1024;
/// Visits of subschemas that one check may cost.
const MAX_VISITS: u64 = 20_000_000;
/// The compiler recurses along references: more than the bounds in `graph` need.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// What a quick check may cost: a visit costs one, and one more for each 16 bytes of text at its place.
const QUICK: u64 = 20_000;
/// Items of one array in a quick check: that all are unique takes each with each.
const QUICK_ITEMS: usize = 64;

/// A compiled schema. Cheap to share by reference; checking allocates only for violations.
///
/// Nothing is ever fetched: a `$ref` leads into the schema itself. Patterns run in linear time, so lookaround and
/// back references are refused. `format` is an annotation, as the standard has it, and is not checked.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    /// Visits per place of the value, by depth.
    cost: Vec<u64>,
}

impl Schema {
    /// Compiles, or tells what is wrong with the schema, with the place in it (`properties.a.type`).
    pub fn compile(schema: &Value) -> Result<Self, Violations> {
        let cost = graph::Graph::new(schema)?.cost()?;
        let compiled = std::thread::scope(|scope| {
            let compiling =
                std::thread::Builder::new().name("schema".into()).stack_size(STACK_BYTES).spawn_scoped(scope, || {
                    jsonschema::options()
                        .with_draft(Draft::Draft202012)
                        .offline()
                        .should_validate_formats(false)
                        .with_pattern_options(
                            PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES),
                        )
                        .build(schema)
                        .map_err(|error| message::of_schema(&error))
                });
            match compiling.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(Violations::one("", "cannot be compiled")),
                Err(error) => Err(Violations::one("", format!("no thread to compile the schema on: {error}"))),
            }
        });
        Ok(Self { validator: compiled?, cost })
    }

    /// What is wrong with a value, with the place in it: `items[0].name`, empty for the whole value. At most
    /// [`MAX_VIOLATIONS`], each of bounded size.
    pub fn check(&self, value: &Value) -> Vec<Violation> {
        self.check_as("", value)
    }

    /// Whether the check of this value takes far less than a millisecond, so that any thread may do it. Says so itself
    /// in less.
    pub fn is_quick(&self, value: &Value) -> bool {
        let mut left = QUICK;
        self.spends(value, 0, &mut left)
    }

    /// Whether the check of the value at this depth costs no more than what is left, which it takes.
    fn spends(&self, value: &Value, depth: usize, left: &mut u64) -> bool {
        if depth > cost::MAX_VALUE_DEPTH {
            return false;
        }
        let visits = self.cost.get(depth).or(self.cost.last()).copied().unwrap_or(1);
        let mut pay = |text: &str| {
            let cost = visits.saturating_mul(1 + text.len() as u64 / 16);
            left.checked_sub(cost).map(|rest| *left = rest).is_some()
        };
        match value {
            Value::String(text) => pay(text),
            Value::Array(items) => {
                pay("") && items.len() <= QUICK_ITEMS && items.iter().all(|item| self.spends(item, depth + 1, left))
            }
            Value::Object(entries) => {
                pay("")
                    && entries.keys().all(|key| pay(key))
                    && entries.values().all(|item| self.spends(item, depth + 1, left))
            }
            _ => pay(""),
        }
    }

    /// As [`Schema::check`], with places that start with `root`: `input.items[0].name`.
    pub fn check_as(&self, root: &str, value: &Value) -> Vec<Violation> {
        if let Err(violation) = self.affordable(root, value) {
            return vec![violation];
        }
        let mut found = Vec::new();
        for error in self.validator.iter_errors(value).take(MAX_VIOLATIONS) {
            message::add(root, &error, &mut found);
        }
        found.truncate(MAX_VIOLATIONS);
        found
    }

    /// Refuses a value that is too deep, or that this schema makes too costly to check.
    fn affordable(&self, root: &str, value: &Value) -> Result<(), Violation> {
        let mut visits = 0u64;
        let mut open = vec![(value, 0)];
        let deepest = self.cost.last().copied().unwrap_or(1);
        while let Some((value, depth)) = open.pop() {
            if depth > cost::MAX_VALUE_DEPTH {
                let message = format!("is nested deeper than {} levels", cost::MAX_VALUE_DEPTH);
                return Err(Violation::new(root, message));
            }
            visits = visits.saturating_add(self.cost.get(depth).copied().unwrap_or(deepest));
            match value {
                Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
                Value::Object(entries) => open.extend(entries.values().map(|item| (item, depth + 1))),
                _ => {}
            }
        }
        if visits > MAX_VISITS {
            return Err(Violation::new(root, "is too large or too deep for its schema, which visits each place often"));
        }
        Ok(())
    }
}
