use std::cmp::Ordering;

use proptest::prelude::*;
use rcrt_breadcrumb::{ContextMatch, ContextPath, Fuel, Matcher, OutOfFuel, Selector, schema_names};
use serde_json::{Value, json};

use crate::object;

fn holds(context: &Value, path: &str, op: &str, value: &Value) -> bool {
    let condition: ContextMatch = serde_json::from_value(json!({"path": path, "op": op, "value": value})).unwrap();
    matches(condition, context, &mut Fuel::for_blocking()).unwrap()
}

fn matches(condition: ContextMatch, context: &Value, fuel: &mut Fuel) -> Result<bool, OutOfFuel> {
    let selector = Selector { context_match: vec![condition], ..Selector::default() };
    Matcher::from(&selector).matches(&[], None, &object(context.clone()), fuel)
}

fn contains_any(values: Vec<Value>) -> ContextMatch {
    serde_json::from_value(json!({"path": "$.a", "op": "contains_any", "value": Value::from(values)})).unwrap()
}

#[test]
fn operators_match_as_documented() {
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
fn each_schema_name_of_the_runtime_can_be_left_out() {
    let source = include_str!("../../src/lib.rs").split("pub mod schema_names").nth(1).unwrap();
    let names: Vec<&str> = source.split('"').filter(|text| text.strip_suffix(".v1").is_some()).collect();
    assert!(names.len() >= 18, "{names:?}");
    let own = Selector { exclude_runtime: true, ..Selector::default() };
    let passes =
        |name| Matcher::from(&own).matches(&[], name, &serde_json::Map::new(), &mut Fuel::for_blocking()).unwrap();
    for name in names.into_iter().chain(["system.guide.v1", "tool.config.v1"]) {
        assert!(schema_names::is_of_runtime(name) && !passes(Some(name)), "{name}");
    }
    for name in [None, Some("note.v1"), Some("toolbox.v1"), Some("my.tool.v1"), Some("system.message.v1")] {
        assert!(passes(name), "{name:?}");
    }
    let written = serde_json::to_value(&own).unwrap();
    assert_eq!((written, json!(Selector::default())), (json!({"exclude_runtime": true}), json!({})));
}

/// A float counts as its JSON text, which has fewer digits than the exact amount of a large float.
#[test]
fn large_numbers_are_compared_by_their_text() {
    let mut cases = Vec::new();
    for exponent in 50..66 {
        for part in [0.0, 1e-15, 0.1, 0.25, 0.37, 0.5, 0.777_777_7, 0.9, 0.999_999_999_999_999_8] {
            cases.push((1.0 + part) * 2_f64.powi(exponent));
        }
    }
    cases.extend((14..20).map(|exponent| 10_f64.powi(exponent)));
    cases.extend([u64::MAX as f64, (u64::MAX as f64).next_down(), 2_f64.powi(53).next_up(), 1.5, 1e300]);
    let at = |value: Value| json!({"a": value, "list": [value]});
    for float in cases.into_iter().flat_map(|float| [float, -float]) {
        let Ok(text) = float.to_string().parse::<i128>() else { continue };
        for (integer, order) in [(text - 1, Ordering::Less), (text, Ordering::Equal), (text + 1, Ordering::Greater)] {
            let Some(integer) =
                i64::try_from(integer).map(Value::from).or_else(|_| u64::try_from(integer).map(Value::from)).ok()
            else {
                continue;
            };
            let is_same = order == Ordering::Equal;
            let float = json!(float);
            for (one, other) in [(&integer, &float), (&float, &integer)] {
                assert_eq!(holds(&at(one.clone()), "$.a", "eq", other), is_same, "{one} {other}");
                assert_eq!(holds(&at(one.clone()), "$.list", "contains", other), is_same, "{one} {other}");
            }
            assert_eq!(holds(&at(integer.clone()), "$.a", "lt", &float), order == Ordering::Less, "{integer} {float}");
            assert_eq!(
                holds(&at(float.clone()), "$.a", "lt", &integer),
                order == Ordering::Greater,
                "{integer} {float}"
            );
        }
    }
}

#[test]
fn an_unknown_operator_is_refused() {
    let read = serde_json::from_value::<ContextMatch>(json!({"path": "$.a", "op": "matches", "value": 1}));
    assert!(read.is_err());
}

#[test]
fn absent_fields_can_be_null() {
    let text = json!({"any_tags": null, "all_tags": null, "schema_name": null, "context_match": null});
    assert!(serde_json::from_value::<Selector>(text).unwrap().is_empty());
}

#[test]
fn selectors_are_bounded() {
    let refused = |conditions: Value| {
        let selector: Selector = serde_json::from_value(json!({"context_match": conditions})).unwrap();
        let violation = selector.check().unwrap_err().0.remove(0);
        (violation.field, violation.message)
    };
    let (field, message) = refused(json!([{"path": "$.a", "op": "eq", "value": "x".repeat(20_000)}]));
    assert_eq!(
        (field.as_str(), message.as_str()),
        ("context_match[0].value", "is 20002 bytes of JSON; at most 16384 are allowed")
    );
    let half = json!({"path": "$.a", "op": "eq", "value": "x".repeat(15_000)});
    assert_eq!(refused(json!([half, half, half])).0, "context_match");
    let (field, message) = refused(json!([{"path": "$.a", "op": "contains_any", "value": vec![0; 1001]}]));
    assert_eq!(
        (field.as_str(), message.as_str()),
        ("context_match[0].value", "has 1001 elements; at most 1000 are allowed")
    );
    let one = json!({"path": "$.a", "op": "exists"});
    assert_eq!(refused(json!(vec![one; 33])).0, "context_match");
    for path in [format!("$.{}", "a".repeat(999)), format!("${}", ".a".repeat(33))] {
        let wrong = ContextPath::try_from(path).unwrap_err();
        assert!(wrong.contains("at most"), "{wrong}");
    }
}

/// Selectors that an older version stored are not bounded, and must not cost more for that. By
/// pairwise comparison, these 30,000 values against 6,000 items were 180 million comparisons.
#[test]
fn match_cost_grows_with_the_sum_of_record_and_selector() {
    let numbers = contains_any(vec![json!(0); 30_000]);
    let mut fuel = Fuel::steps(50_000);
    assert_eq!(matches(numbers.clone(), &json!({"a": vec![0.5; 6_000]}), &mut fuel), Ok(false));
    assert!(fuel.left() > 10_000, "{fuel:?}");
    assert_eq!(matches(numbers, &json!({"a": vec![0.5; 6_000]}), &mut Fuel::steps(10_000)), Err(OutOfFuel));

    let texts: Vec<Value> = (0..5_000).map(|n| json!(format!("no{n}"))).collect();
    let (texts, record) = (contains_any(texts), json!({"a": "n".repeat(1_000_000)}));
    let mut fuel = Fuel::steps(200_000);
    assert_eq!(matches(texts, &record, &mut fuel), Ok(false));
    assert!(fuel.left() > 50_000, "{fuel:?}");
}

/// The sets are not built again: only the record costs fuel.
#[test]
fn matcher_builds_its_sets_once() {
    let selector = Selector { context_match: vec![contains_any(vec![json!(0); 30_000])], ..Selector::default() };
    let (matcher, context) = (Matcher::from(&selector), object(json!({"a": [1, 2, 3]})));
    matcher.matches(&[], None, &context, &mut Fuel::for_blocking()).unwrap();
    let mut fuel = Fuel::steps(100);
    assert_eq!(matcher.matches(&[], None, &context, &mut fuel), Ok(false));
    assert!(fuel.left() > 90, "{fuel:?}");
}

/// A selector with many conditions that each read a large record is stopped when its fuel runs out.
#[test]
fn match_stops_when_fuel_runs_out() {
    let condition: ContextMatch = serde_json::from_value(json!({"path": "$.a", "op": "contains", "value": 1})).unwrap();
    let other = ContextMatch { op: rcrt_breadcrumb::MatchOp::Ne, ..condition.clone() };
    let mut conditions = vec![other; 31];
    conditions.insert(0, condition);
    let selector = Selector { context_match: conditions, ..Selector::default() };
    let context = object(json!({"a": vec![0; 100_000]}));
    assert_eq!(Matcher::from(&selector).matches(&[], None, &context, &mut Fuel::for_async()), Err(OutOfFuel));
    assert_eq!(Matcher::from(&selector).matches(&[], None, &context, &mut Fuel::for_blocking()), Ok(false));
}

#[test]
fn wrong_paths_are_refused() {
    for path in ["", "a", "$", "$a", "$.", "$..a", "$.a[", "$.a[x]", "$.a[-1]", "$.a[]", "$.a]", "$.a[0]b"] {
        assert!(ContextPath::try_from(path.to_owned()).is_err(), "{path:?}");
    }
}

#[test]
fn all_conditions_of_a_selector_must_match() {
    let selector: Selector = serde_json::from_value(json!({
        "any_tags": ["a", "b"], "all_tags": ["c"], "schema_name": "s",
        "context_match": [{"path": "$.k", "op": "exists"}],
    }))
    .unwrap();
    let matches = |tags: &[&str], schema: Option<&str>, context: Value| {
        let tags: Vec<String> = tags.iter().map(ToString::to_string).collect();
        Matcher::from(&selector).matches(&tags, schema, &object(context), &mut Fuel::for_blocking()).unwrap()
    };
    assert!(matches(&["b", "c"], Some("s"), json!({"k": null})));
    assert!(!matches(&["c"], Some("s"), json!({"k": 1})));
    assert!(!matches(&["a"], Some("s"), json!({"k": 1})));
    assert!(!matches(&["a", "c"], None, json!({"k": 1})));
    assert!(!matches(&["a", "c"], Some("s"), json!({})));
}

#[test]
fn malformed_selector_names_the_field() {
    let selector: Selector =
        serde_json::from_value(json!({"context_match": [{"path": "$.a", "op": "gt", "value": []}]})).unwrap();
    assert_eq!(selector.check().unwrap_err().0[0].field, "context_match[0].value");
}

/// Equality as documented, value by value: numbers by amount, objects without order.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => match (a.is_f64(), b.is_f64()) {
            (false, false) => a.to_string() == b.to_string(),
            _ => a.as_f64().unwrap().partial_cmp(&b.as_f64().unwrap()) == Some(Ordering::Equal),
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

fn model(value: &Value, wanted: &[Value]) -> bool {
    wanted.iter().any(|wanted| match value {
        Value::Array(items) => items.iter().any(|item| equal(item, wanted)),
        Value::String(text) => wanted.as_str().is_some_and(|part| text.contains(part)),
        _ => false,
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3_i32..4).prop_map(Value::from),
        // Halves, so that some whole numbers are written as floats.
        (-6_i32..7).prop_map(|n| json!(f64::from(n) / 2.0)),
        Just(json!(-0.0)),
        Just(json!(1e300)),
        Just(json!(4_503_599_627_370_496_i64)),
        Just(json!(4_503_599_627_370_496.0)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(("[ab]", inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn hash_lookup_agrees_with_pairwise_comparison(
        items in proptest::collection::vec(any_value(), 0..6),
        text in "[ab]{0,5}",
        wanted in proptest::collection::vec(any_value(), 0..6),
    ) {
        for value in [Value::from(items), Value::from(text)] {
            let context = json!({"a": value});
            prop_assert_eq!(holds(&context, "$.a", "contains_any", &json!(wanted)), model(&value, &wanted));
            for one in &wanted {
                prop_assert_eq!(holds(&context, "$.a", "contains", one), model(&value, std::slice::from_ref(one)));
                prop_assert_eq!(holds(&context, "$.a", "eq", one), equal(&value, one));
            }
        }
    }

    #[test]
    fn path_parsing_never_panics_and_round_trips(text in "\\$?[.a-c\\[\\]0-9]{0,12}") {
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
fn selectors_and_conditions_accept_only_objects() {
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
