//! A selector decides which records trigger a tool: it parses back to itself, its operators are
//! consistent with each other, and a path means one position.
//!
//! Input: the selector as JSON, then the context of a record as JSON.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use rcrt_breadcrumb::{ContextMatch, Fuel, MatchOp, Matcher, OutOfFuel, Selector};
use serde_json::{Deserializer, Map, Value};

fuzz_target!(|input: &[u8]| -> Corpus {
    let mut documents = Deserializer::from_slice(input).into_iter::<Value>();
    let Some(Ok(selector)) = documents.next() else { return Corpus::Reject };
    let Ok(selector) = serde_json::from_value::<Selector>(selector) else { return Corpus::Keep };
    let written = serde_json::to_value(&selector).expect("what was read can be written");
    assert_eq!(serde_json::from_value::<Selector>(written).expect("and read again"), selector);
    let Some(Ok(Value::Object(context))) = documents.next() else { return Corpus::Keep };
    // It depends on the schema name alone, which is that of the selector here.
    let selector = Selector { exclude_runtime: false, ..selector };
    if selector.check().is_err() {
        return Corpus::Keep;
    }

    let schema_name = selector.schema_name.as_deref();
    let tags: Vec<String> = selector.any_tags.iter().take(1).chain(&selector.all_tags).cloned().collect();
    let matcher = Matcher::from(&selector);
    let matches =
        |tags: &[String], schema_name| matcher.matches(tags, schema_name, &context, &mut Fuel::for_blocking());
    let each: Result<Vec<bool>, OutOfFuel> =
        selector.context_match.iter().map(|condition| holds(condition.clone(), &context)).collect();
    // A match that is too expensive has no result.
    let (Ok(each), Ok(all)) = (each, matches(&tags, schema_name)) else { return Corpus::Keep };
    assert_eq!(all, each.iter().all(|holds| *holds), "tags and schema fit");
    if !tags.is_empty() {
        assert_ne!(matches(&[], schema_name), Ok(true), "a tag is missing");
    }
    if schema_name.is_some() {
        assert_ne!(matches(&tags, None), Ok(true), "the schema is another");
    }
    for condition in &selector.context_match {
        let _ = check_operators(condition, &context);
    }
    Corpus::Keep
});

fn holds(condition: ContextMatch, context: &Map<String, Value>) -> Result<bool, OutOfFuel> {
    let selector = Selector { context_match: vec![condition], ..Selector::default() };
    Matcher::from(&selector).matches(&[], None, context, &mut Fuel::for_blocking())
}

/// The value at the path: a step is an object's key, or an array's index.
fn find<'v>(steps: &[String], context: &'v Map<String, Value>) -> Option<&'v Value> {
    let (first, rest) = steps.split_first()?;
    rest.iter().try_fold(context.get(first)?, |value, step| match value {
        Value::Object(object) => object.get(step),
        Value::Array(array) => array.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

fn check_operators(condition: &ContextMatch, context: &Map<String, Value>) -> Result<(), OutOfFuel> {
    let with = |op, value: &Value| ContextMatch { path: condition.path.clone(), op, value: value.clone() };
    let holds = |op, value: &Value| holds(with(op, value), context);
    let there = find(condition.path.steps(), context);
    let wanted = &condition.value;
    assert_ne!(holds(MatchOp::Eq, wanted)?, holds(MatchOp::Ne, wanted)?);
    assert_eq!(holds(MatchOp::Exists, &Value::Bool(true))?, there.is_some());
    assert_ne!(holds(MatchOp::Exists, &Value::Bool(false))?, there.is_some());
    let verdicts = [holds(MatchOp::Eq, wanted)?, holds(MatchOp::Gt, wanted)?, holds(MatchOp::Lt, wanted)?];
    assert!(verdicts.iter().filter(|holds| **holds).count() <= 1, "{wanted}: {verdicts:?}");
    if let Some(there) = there {
        assert!(holds(MatchOp::Eq, there)?, "{there} is itself");
        let comparable = there.is_number() && wanted.is_number() || there.is_string() && wanted.is_string();
        assert_eq!(verdicts[1] || verdicts[2], comparable && !verdicts[0], "{there} beside {wanted}");
        let alone = Value::Array(vec![wanted.clone()]);
        assert_eq!(holds(MatchOp::ContainsAny, &alone)?, holds(MatchOp::Contains, wanted)?);
    }
    Ok(())
}
