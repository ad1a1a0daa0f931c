//! A compiled schema.

use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use rcrt_breadcrumb::{Violation, Violations};
use serde_json::Value;

use crate::alternatives::Alternatives;
use crate::budget::{Budget, BudgetShare};
use crate::by_hash::{OneOf, Unique};
use crate::cost::{self, Cost};
use crate::errors::ErrorCost;
use crate::expansion::Expansions;
use crate::graph::Graph;
use crate::matching::{Matches, PATTERN_BYTES};
use crate::multiple_of::MultipleOf;
use crate::{message, pattern};

/// The most violations that are reported for one value.
pub const MAX_VIOLATIONS: usize = 50;

/// The most steps of one check, a fraction of a second: see [`Cost`].
const MAX_STEPS: u64 = 20_000_000;
/// If all errors can take more bytes, one is reported. See [`ErrorCost`].
const MAX_ERROR_BYTES: u64 = 32 * 1024 * 1024;
/// The compiler recurses along references. This is more than the limits in `graph` need.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// The most steps of a quick check, and the most bytes of its errors.
const QUICK: u64 = 20_000;
const QUICK_ERROR_BYTES: u64 = 512 * 1024;
/// Approximate bytes of a compiled schema for each byte of its text, without its patterns.
const GROWTH: u64 = 8;

/// A compiled schema. It is cheap to share by reference. A check allocates only for violations.
///
/// Nothing is fetched: a `$ref` refers to the schema itself. Patterns run in linear time, so
/// lookaround and back references are refused. `format` is an annotation, as in the standard, and
/// is not checked.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    cost: Cost,
    errors: ErrorCost,
    alternatives: Alternatives,
    /// The share of its owner's budget.
    _part: Option<BudgetShare>,
}

impl Schema {
    /// Compiles a schema, or returns the violations with their places in it (`properties.a.type`).
    pub fn compile(schema: &Value) -> Result<Self, Violations> {
        Self::compile_as(schema, None)
    }

    /// Like [`Self::compile`], within a budget. Refused if the budget has too little left.
    pub fn compile_within(schema: &Value, budget: &Budget) -> Result<Self, Violations> {
        Self::compile_as(schema, Some(budget))
    }

    fn compile_as(schema: &Value, budget: Option<&Budget>) -> Result<Self, Violations> {
        let graph = Graph::new(schema)?;
        let expansions = Expansions::of(&graph)?;
        let patterns = pattern::measure(&graph)?;
        let takes = patterns.bytes.saturating_add(GROWTH * graph.bytes as u64 + expansions.unevaluated_bytes);
        let part = budget.map(|budget| budget.take(takes)).transpose().map_err(|all| {
            let message = format!(
                "takes about {takes} bytes when it is compiled, which is more than is left of the {all} for all schemas \
                 of the tenant"
            );
            Violations::one("", message)
        })?;
        let cost = Cost::of_schema(&graph, &expansions, &patterns);
        let errors = ErrorCost::of(&graph, &expansions);
        let expressions = pattern::compile(&graph)?;
        let compiled = std::thread::scope(|scope| {
            let compiling =
                std::thread::Builder::new().name("schema".into()).stack_size(STACK_BYTES).spawn_scoped(scope, || {
                    jsonschema::options()
                        .with_draft(Draft::Draft202012)
                        .offline()
                        .should_validate_formats(false)
                        .with_keyword("enum", |_, values, _| Ok(Box::new(OneOf::of(values))))
                        .with_keyword("const", |_, value, _| Ok(Box::new(OneOf::only(value))))
                        .with_keyword("multipleOf", |_, divisor, _| Ok(Box::new(MultipleOf::new(divisor))))
                        .with_keyword("uniqueItems", |_, asked, _| Ok(Box::new(Unique::if_asked(asked))))
                        .with_keyword("pattern", move |_, pattern, _| {
                            let known = pattern.as_str().and_then(|text| expressions.get(text)).cloned();
                            let known = known.ok_or_else(|| ValidationError::custom("must be a regular expression"))?;
                            Ok(Box::new(Matches(known)))
                        })
                        .with_pattern_options(
                            PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(pattern::KEPT_DFA_BYTES),
                        )
                        .build(schema)
                        .map_err(|error| message::of_schema(&error))
                });
            match compiling.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(Violations::one("", "cannot be compiled")),
                Err(error) => Err(Violations::one("", format!("cannot start a thread to compile the schema: {error}"))),
            }
        });
        Ok(Self { validator: compiled?, cost, errors, alternatives: Alternatives::of(schema), _part: part })
    }

    /// Checks a value. Each violation has its place in the value: `items[0].name`, empty for the
    /// whole value. Returns at most [`MAX_VIOLATIONS`], each of bounded size.
    pub fn check(&self, value: &Value) -> Vec<Violation> {
        self.check_as("", value)
    }

    /// Whether a check of this value takes far less than a millisecond, so that any thread can do
    /// it. This itself takes less.
    pub fn is_quick(&self, value: &Value) -> bool {
        self.cost.of(value, QUICK).is_some() && self.errors.of_value(value, QUICK_ERROR_BYTES).is_some()
    }

    /// Like [`Schema::check`], with places that start with `root`: `input.items[0].name`.
    pub fn check_as(&self, root: &str, value: &Value) -> Vec<Violation> {
        if self.cost.of(value, MAX_STEPS).is_none() {
            let message = if cost::is_too_deep(value) {
                format!("is nested deeper than {} levels", cost::MAX_VALUE_DEPTH)
            } else {
                "is too large or too deep for its schema, which checks each place many times".to_owned()
            };
            return vec![Violation::new(root, message)];
        }
        let mut found = Vec::new();
        // This allocates nothing if the value is valid.
        if self.validator.is_valid(value) {
            return found;
        }
        if self.errors.of_value(value, MAX_ERROR_BYTES).is_some() {
            // The validator collects all errors before it returns the first.
            for error in self.validator.iter_errors(value).take(MAX_VIOLATIONS) {
                message::add(root, &error, &self.alternatives, &mut found);
            }
        } else if self.errors.nests {
            // Even the first error can contain very many.
            found.push(Violation::new(root, "does not match its schema, and is too large for a list of its errors"));
        } else if let Err(error) = self.validator.validate(value) {
            message::add(root, &error, &self.alternatives, &mut found);
        }
        found.truncate(MAX_VIOLATIONS);
        found
    }
}
