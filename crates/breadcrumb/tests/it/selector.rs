use breadcrumb::{ContextMatch, ContextPath, Selector};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::object;

fn holds(context: &Value, path: &str, op: &str, value: &Value) -> bool {
    let condition: ContextMatch = serde_json::from_value(json!({"path": path, "op": op, "value": value})).unwrap();
    condition.holds(&object(context.clone()))
}

#[test]
fn each_operator_holds_as_described() {
    let context = json!({"n": 1, "s": "abc", "list": [1, "x", {"k": 1}], "o": {"a": [10, {"b": null}]}});
    let cases = [
        ("$.n", "eq", json!(1.0), true),
        ("$.n", "eq", json!("1"), false),
        ("$.missing", "eq", json!(null), false),
        ("$.missing", "ne", json!(1), true),
        ("$.n", "ne", json!(1), false),
        ("$.n", "gt", json!(0.5), true),
        ("$.n", "gt", json!(1), false),
        ("$.n", "gte", json!(1.0), true),
        ("$.n", "gte", json!(1.5), false),
        ("$.n", "lte", json!(1), true),
        ("$.n", "lte", json!("1"), false),
        ("$.missing", "lte", json!(1), false),
        ("$.s", "lt", json!("abd"), true),
        ("$.s", "gt", json!(1), false),
        ("$.s", "contains", json!("bc"), true),
        ("$.list", "contains", json!({"k": 1.0}), true),
        ("$.list", "contains", json!("y"), false),
        ("$.o", "contains", json!("a"), false),
        ("$.list", "contains_any", json!(["y", "x"]), true),
        ("$.list", "contains_any", json!([]), false),
        ("$.o.a[1].b", "exists", json!(true), true),
        ("$.o.a[1].b", "exists", json!(null), true),
        ("$.o.a[2]", "exists", json!(false), true),
        ("$.o.a[0].b", "exists", json!(true), false),
    ];
    for (path, op, value, expected) in cases {
        assert_eq!(holds(&context, path, op, &value), expected, "{path} {op} {value}");
    }
}

#[test]
fn an_unknown_operator_is_refused() {
    let read = serde_json::from_value::<ContextMatch>(json!({"path": "$.a", "op": "matches", "value": 1}));
    assert!(read.is_err());
}

#[test]
fn what_is_left_out_may_be_null() {
    let text = json!({"any_tags": null, "all_tags": null, "schema_name": null, "context_match": null});
    assert!(serde_json::from_value::<Selector>(text).unwrap().is_empty());
}

#[test]
fn a_selector_has_bounds() {
    let value = "x".repeat(70_000);
    let selector: Selector =
        serde_json::from_value(json!({"context_match": [{"path": "$.a", "op": "eq", "value": value}]})).unwrap();
    assert_eq!(selector.check().unwrap_err().0[0].field, "context_match");
}

#[test]
fn wrong_paths_are_refused() {
    for path in ["", "a", "$", "$a", "$.", "$..a", "$.a[", "$.a[x]", "$.a[-1]", "$.a[]", "$.a]", "$.a[0]b"] {
        assert!(ContextPath::try_from(path.to_owned()).is_err(), "{path:?}");
    }
}

#[test]
fn every_part_of_a_selector_must_hold() {
    let selector: Selector = serde_json::from_value(json!({
        "any_tags": ["a", "b"], "all_tags": ["c"], "schema_name": "s",
        "context_match": [{"path": "$.k", "op": "exists"}],
    }))
    .unwrap();
    let matches = |tags: &[&str], schema: Option<&str>, context: Value| {
        let tags: Vec<String> = tags.iter().map(ToString::to_string).collect();
        selector.matches(&tags, schema, &object(context))
    };
    assert!(matches(&["b", "c"], Some("s"), json!({"k": null})));
    assert!(!matches(&["c"], Some("s"), json!({"k": 1})));
    assert!(!matches(&["a"], Some("s"), json!({"k": 1})));
    assert!(!matches(&["a", "c"], None, json!({"k": 1})));
    assert!(!matches(&["a", "c"], Some("s"), json!({})));
}

#[test]
fn a_selector_of_the_wrong_shape_names_the_field() {
    let selector: Selector =
        serde_json::from_value(json!({"context_match": [{"path": "$.a", "op": "gt", "value": []}]})).unwrap();
    assert_eq!(selector.check().unwrap_err().0[0].field, "context_match[0].value");
}

proptest! {
    #[test]
    fn a_path_never_panics_and_comes_back_as_written(text in "\\$?[.a-c\\[\\]0-9]{0,12}") {
        if let Ok(path) = ContextPath::try_from(text.clone()) {
            prop_assert_eq!(path.to_string(), text);
            prop_assert!(!path.steps().is_empty());
        }
    }

    #[test]
    fn eq_and_ne_are_opposites(left in any::<i32>(), right in any::<i32>()) {
        let context = json!({"a": left});
        prop_assert_ne!(
            holds(&context, "$.a", "eq", &json!(right)),
            holds(&context, "$.a", "ne", &json!(right))
        );
    }
}

#[test]
fn a_selector_and_its_conditions_are_objects_and_nothing_else() {
    for wrong in [
        json!([null, null]),
        json!([["a"], ["b"], null, null]),
        json!({"context_match": [["$.a", "eq", 1]]}),
        json!("any"),
    ] {
        assert!(serde_json::from_value::<Selector>(wrong.clone()).is_err(), "{wrong}");
        assert!(serde_json::from_str::<Selector>(&wrong.to_string()).is_err(), "{wrong}");
    }
    let nulls = json!({"any_tags": null, "all_tags": null, "schema_name": null, "context_match": null});
    assert_eq!(serde_json::from_value::<Selector>(nulls).unwrap(), Selector::default());
    let whole = json!({"any_tags": ["a"], "context_match": [{"path": "$.a", "op": "eq", "value": 1}]});
    let read: Selector = serde_json::from_value(whole.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), whole);
}
