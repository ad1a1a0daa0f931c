//! A selector decides which records wake a tool: it reads back as itself, its operators are what they say beside each
//! other, and a path means one place.
//!
//! Input: the selector as JSON, then the context of a record as JSON.
#![no_main]

use breadcrumb::{ContextMatch, MatchOp, Selector};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::{Deserializer, Map, Value};

fuzz_target!(|input: &[u8]| -> Corpus {
    let mut documents = Deserializer::from_slice(input).into_iter::<Value>();
    let Some(Ok(selector)) = documents.next() else { return Corpus::Reject };
    let Ok(selector) = serde_json::from_value::<Selector>(selector) else { return Corpus::Keep };
    let written = serde_json::to_value(&selector).expect("what was read can be written");
    assert_eq!(serde_json::from_value::<Selector>(written).expect("and read again"), selector);
    let Some(Ok(Value::Object(context))) = documents.next() else { return Corpus::Keep };
    if selector.check().is_err() {
        return Corpus::Keep;
    }

    let schema_name = selector.schema_name.as_deref();
    let tags: Vec<String> = selector.any_tags.iter().take(1).chain(&selector.all_tags).cloned().collect();
    let holds = selector.context_match.iter().all(|condition| condition.holds(&context));
    assert_eq!(selector.matches(&tags, schema_name, &context), holds, "tags and schema fit");
    if !tags.is_empty() {
        assert!(!selector.matches(&[], schema_name, &context), "a tag is missing");
    }
    if schema_name.is_some() {
        assert!(!selector.matches(&tags, None, &context), "the schema is another");
    }
    for condition in &selector.context_match {
        check_operators(condition, &context);
    }
    Corpus::Keep
});

fn check_operators(condition: &ContextMatch, context: &Map<String, Value>) {
    let with = |op, value: &Value| ContextMatch { path: condition.path.clone(), op, value: value.clone() };
    let holds = |op, value: &Value| with(op, value).holds(context);
    let there = condition.path.find(context);
    let wanted = &condition.value;
    assert_ne!(holds(MatchOp::Eq, wanted), holds(MatchOp::Ne, wanted));
    assert_eq!(holds(MatchOp::Exists, &Value::Bool(true)), there.is_some());
    assert_ne!(holds(MatchOp::Exists, &Value::Bool(false)), there.is_some());
    let verdicts = [MatchOp::Eq, MatchOp::Gt, MatchOp::Lt].map(|op| holds(op, wanted));
    assert!(verdicts.iter().filter(|holds| **holds).count() <= 1, "{wanted}: {verdicts:?}");
    if let Some(there) = there {
        assert!(holds(MatchOp::Eq, there), "{there} is itself");
        let comparable = there.is_number() && wanted.is_number() || there.is_string() && wanted.is_string();
        assert_eq!(verdicts[1] || verdicts[2], comparable && !verdicts[0], "{there} beside {wanted}");
        let alone = Value::Array(vec![wanted.clone()]);
        assert_eq!(holds(MatchOp::ContainsAny, &alone), holds(MatchOp::Contains, wanted));
    }
}
