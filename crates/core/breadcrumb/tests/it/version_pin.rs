use proptest::prelude::*;
use rcrt_breadcrumb::{Breadcrumb, ToolRequest, VersionPin};
use serde_json::{Map, Value, json};

use crate::object;

fn context(more: Value) -> Map<String, Value> {
    let mut context = object(json!({"tool": "echo"}));
    context.extend(object(more));
    context
}

fn refusal(more: Value) -> String {
    ToolRequest::check(&context(more)).unwrap_err().to_string()
}

#[test]
fn a_version_is_a_whole_number_from_1() {
    for wrong in [json!(0), json!(-1), json!(1.5), json!("1"), json!("1.0.0"), json!([1]), json!(u64::MAX)] {
        let text = refusal(json!({"version": wrong}));
        assert!(text.starts_with("context.version: must be a whole number from 1"), "{wrong}: {text}");
    }
}

#[test]
fn a_version_and_a_definition_cannot_be_named_together() {
    let (hash, _) = Breadcrumb::measure(&Map::new());
    let hash = Breadcrumb::definition_hash(&hash);
    let text = refusal(json!({"version": 1, "definition_hash": hash}));
    assert!(text.contains("cannot be used together with version"), "{text}");
    // A null field is an absent one.
    assert!(ToolRequest::check(&context(json!({"version": null, "definition_hash": hash}))).is_ok());
    assert!(!VersionPin::is_named_in(&context(json!({"version": null, "definition_hash": null}))));
}

proptest! {
    #[test]
    fn every_number_from_1_is_a_version(number in 1_i64..) {
        let context = context(json!({"version": number}));
        prop_assert!(ToolRequest::check(&context).is_ok());
        prop_assert!(VersionPin::Number(number).matches(number, ""));
    }

    #[test]
    fn the_hash_of_every_context_is_a_definition_hash(text in ".*") {
        let (checksum, _) = Breadcrumb::measure(&object(json!({"text": text})));
        let hash = Breadcrumb::definition_hash(&checksum);
        let context = context(json!({"definition_hash": hash}));
        prop_assert!(ToolRequest::check(&context).is_ok());
        prop_assert!(VersionPin::Definition(hash.clone()).matches(1, &hash));
    }

    #[test]
    fn other_texts_are_not_definition_hashes(text in "(sha256:)?[0-9a-fA-F]{0,63}|sha256:[0-9a-f]{65,70}|sha512:[0-9a-f]{64}|.{0,30}") {
        let refused = refusal(json!({"definition_hash": text}));
        prop_assert!(refused.starts_with("context.definition_hash: must be sha256: and 64"), "{refused}");
    }
}
