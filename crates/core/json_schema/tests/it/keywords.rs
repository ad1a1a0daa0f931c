//! Keywords whose cost depends on the schema more than on the value.

use rcrt_json_schema::Schema;
use serde_json::{Map, Value, json};

use crate::schema::{refusal, violations};

/// The validator applies this keyword of older drafts. It was not counted: 45 KB with 1,500 such
/// patterns took 1.5 GB and 10 s.
#[test]
fn schemas_below_dependencies_are_counted() {
    let depends = |schema: Value| json!({"dependencies": {"a": schema}});
    let patterns: Map<String, Value> = (0..1500).map(|n| (format!("\\p{{L}}{{20}}{n}"), json!(true))).collect();
    let refused = refusal(&depends(json!({"patternProperties": patterns})));
    assert!(refused.starts_with("dependencies.a.patternProperties: exceeds the limit for patterns"), "{refused}");
    assert!(refusal(&depends(json!({"$ref": "#"}))).contains("refers to itself"));
    assert!(refusal(&depends(json!({"$id": "https://example.com/a"}))).starts_with("dependencies.a.$id"));
    assert!(refusal(&depends(json!({"$ref": "#/$defs/none"}))).starts_with("dependencies.a.$ref"));
    let doubled = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    let deep = (0..100).fold(json!({}), |inner, _| json!({"a": inner}));
    assert!(violations(&depends(doubled), &deep)[0].1.contains("too large or too deep"));
    // It works as before.
    let schema = depends(json!({"required": ["b"]}));
    assert_eq!(violations(&schema, &json!({"a": 1})), [("input.b".to_owned(), "is required".to_owned())]);
    assert_eq!(violations(&schema, &json!({"a": 1, "b": 2})), []);
    assert_eq!(violations(&json!({"dependencies": {"a": ["b"]}}), &json!({"a": 1})).len(), 1);
}

/// Each name is looked up in each object: 6,000 names and 4 MB of empty objects took a minute.
#[test]
fn names_that_are_looked_up_in_each_object_are_counted() {
    let names: Map<String, Value> = (0..6000).map(|n| (format!("n{n}"), json!([]))).collect();
    let objects = json!(vec![json!({}); 20_000]);
    for keyword in ["dependentRequired", "dependencies"] {
        let schema = json!({"items": {keyword: names}});
        assert!(violations(&schema, &objects)[0].1.contains("too large"), "{keyword}");
        assert!(!Schema::compile(&schema).unwrap().is_quick(&json!(vec![json!({}); 20])), "{keyword}");
        assert_eq!(violations(&schema, &json!([{}, {"n1": 1}])), [], "{keyword}");
    }
    let all: Vec<String> = (0..100).map(|n| format!("n{n}")).collect();
    let each: Map<String, Value> = all.iter().map(|name| (name.clone(), json!(all))).collect();
    let object: Map<String, Value> = all.iter().map(|name| (name.clone(), json!(0))).collect();
    let schema = json!({"items": {"dependentRequired": each}});
    assert_eq!(violations(&schema, &json!([object])), []);
    assert!(violations(&schema, &json!(vec![json!(object); 1000]))[0].1.contains("too large"));
}

/// Two subschemas of one name: the bounds were computed for one, and the validator used the other.
#[test]
fn an_anchor_of_two_subschemas_is_refused() {
    for keyword in ["$anchor", "$dynamicAnchor"] {
        let schema = json!({"$ref": "#x", "$defs": {"a": {keyword: "x"}, "b": {"$anchor": "x"}}});
        assert!(refusal(&schema).contains("is \"x\", which another subschema has"), "{keyword}");
    }
    assert_eq!(violations(&json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "y"}}}), &json!(1)), []);
}

#[test]
fn multiples_are_computed_from_decimal_digits() {
    for (divisor, value, is_multiple) in [
        (json!(2), json!(4), true),
        (json!(2), json!(-3), false),
        (json!(3), json!(1e300), false),
        (json!(5), json!(1e300), true),
        (json!(0.1), json!(0.3), true),
        (json!(0.1), json!(1.2345e300), true),
        (json!(0.01), json!(19.99), true),
        (json!(0.01), json!(19.999), false),
        (json!(0.7), json!(2.1), true),
        (json!(1e-300), json!(1.5), true),
        (json!(1e300), json!(1.5), false),
        (json!(2.5), json!(10), true),
        (json!(1.5e3), json!(3000.0), true),
        (json!(7), json!(u64::MAX), false),
        (json!(5), json!(u64::MAX), true),
        (json!(2), json!(i64::MIN), true),
        (json!(4), json!(0.0), true),
        (json!(4), json!("3"), true),
    ] {
        let found = violations(&json!({"multipleOf": divisor}), &value);
        assert_eq!(found.is_empty(), is_multiple, "{value} of {divisor}: {found:?}");
    }
    assert_eq!(
        violations(&json!({"multipleOf": 0.5}), &json!(0.7)),
        [("input".to_owned(), "must be a multiple of 0.5, is 0.7".to_owned())]
    );
    assert!(refusal(&json!({"multipleOf": 0})).starts_with("multipleOf"));
}
