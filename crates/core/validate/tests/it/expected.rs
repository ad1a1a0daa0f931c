//! Comparing a value with an expected one that can contain matchers.

use proptest::prelude::*;
use rcrt_validate::expected::{MAX_DIFFERENCES, check_expected, differences, has_matchers};
use serde_json::{Map, Value, json};

/// `path: message` of each difference.
fn found(expected: &Value, actual: &Value) -> Vec<String> {
    differences(expected, actual).iter().map(|one| format!("{}: {}", one.path, one.message)).collect()
}

#[test]
fn each_difference_names_its_place() {
    let expected = json!({"a": 1, "list": [1, {"b": "x"}], "gone": true, "type": "text"});
    let actual = json!({"a": 2, "list": [1, {"b": "y"}, 3], "more": null, "type": 7});
    assert_eq!(
        found(&expected, &actual),
        [
            "$.a: is a different number",
            "$.list[1].b: is a different string",
            "$.list[2]: the list must have 2 items; it has 3",
            "$.gone: is missing",
            "$.type: has the type number; expected string",
            "$.more: is not expected",
        ]
    );
}

#[test]
fn numbers_are_compared_by_amount() {
    assert_eq!(found(&json!(1), &json!(1.0)), [""; 0]);
    assert_eq!(found(&json!(9_007_199_254_740_993_i64), &json!(9_007_199_254_740_992_i64)).len(), 1);
}

#[test]
fn matchers_accept_values_of_their_kind_only() {
    let cases = [
        (json!({"$any": true}), vec![json!(null), json!({"a": [1]})], vec![]),
        (json!({"$type": "string"}), vec![json!("")], vec![json!(1), json!(null)]),
        (json!({"$type": "integer"}), vec![json!(3), json!(3.0)], vec![json!(3.5), json!("3")]),
        (json!({"$type": "array"}), vec![json!([])], vec![json!({})]),
        (json!({"$regex": "^a+$"}), vec![json!("aa")], vec![json!("ab"), json!(1)]),
        (json!({"$near": [2.54, 0.01]}), vec![json!(2.545), json!(2.53)], vec![json!(2.6), json!("2.54")]),
        (json!({"$literal": {"$type": "string"}}), vec![json!({"$type": "string"})], vec![json!("text")]),
    ];
    for (matcher, accepted, refused) in cases {
        assert!(has_matchers(&json!([{"in": matcher}])), "{matcher}");
        assert!(check_expected("output", &matcher).is_empty(), "{matcher}");
        for value in accepted {
            assert_eq!(found(&json!({"in": matcher}), &json!({"in": value})), [""; 0], "{matcher}");
        }
        for value in refused {
            assert_eq!(found(&json!({"in": matcher}), &json!({"in": value})).len(), 1, "{matcher} took {value}");
        }
    }
}

#[test]
fn a_matcher_that_cannot_be_read_is_reported_with_what_it_takes() {
    let cases = [
        (json!({"$type": "text"}), "$type takes string, number, integer, boolean, object, array or null"),
        (json!({"$near": [1]}), "$near takes [number, largest difference]"),
        (json!({"$any": 1}), "$any takes true"),
        (json!({"$regexp": "a"}), "$regexp is not a matcher"),
    ];
    for (matcher, message) in cases {
        let violations = check_expected("output", &json!({"list": [matcher]}));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].field, "output.list[0]");
        assert!(violations[0].message.contains(message), "{}", violations[0].message);
    }
    assert!(check_expected("output", &json!({"$regex": "(?=a)"}))[0].message.contains("$regex"));
    // A wrong matcher accepts nothing.
    assert_eq!(found(&json!({"$near": "3"}), &json!(3)).len(), 1);
}

#[test]
fn differences_are_bounded_in_number_and_size() {
    let expected: Vec<Value> = (0..100).map(|n| json!(n)).collect();
    let actual: Vec<Value> = (0..100).map(|n| json!("x".repeat(2000 + n))).collect();
    let found = differences(&json!(expected), &json!(actual));
    assert_eq!(found.len(), MAX_DIFFERENCES);
    assert!(found[0].actual.as_ref().unwrap().as_str().unwrap().ends_with("(2002 bytes of JSON)"));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|number: f64| json!(number)),
        "[a-z$]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z$]{0,5}", inner, 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn literal(value: &Value) -> Value {
    json!({"$literal": value})
}

proptest! {
    #[test]
    fn every_value_equals_itself_as_a_literal(value in any_value()) {
        let found = differences(&literal(&value), &value);
        prop_assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn comparing_is_symmetric(one in any_value(), other in any_value()) {
        let is_same = differences(&literal(&one), &other).is_empty();
        prop_assert_eq!(is_same, differences(&literal(&other), &one).is_empty());
    }
}
