//! JSON Schemas: compiled, checked, and bounded.

use proptest::prelude::*;
use rcrt_json_schema::{Budget, MAX_VIOLATIONS, Schema};
use serde_json::{Value, json};

pub fn violations(schema: &Value, value: &Value) -> Vec<(String, String)> {
    let schema = Schema::compile(schema).unwrap_or_else(|errors| panic!("{errors}"));
    schema.check_as("input", value).into_iter().map(|found| (found.field, found.message)).collect()
}

pub fn refusal(schema: &Value) -> String {
    Schema::compile(schema).expect_err("accepted an invalid schema").to_string()
}

#[test]
fn each_violation_has_a_path_and_a_message() {
    let schema = json!({
        "type": "object",
        "properties": {
            "items": { "type": "array", "items": { "$ref": "#/$defs/item" }, "maxItems": 3 },
            "mode": { "enum": ["a", "b"] },
            "headers": { "type": "object", "additionalProperties": { "type": "string" } },
            "either": { "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 3 }] },
            "count": { "type": "integer", "minimum": 1, "multipleOf": 2 },
            "text": { "type": "string", "minLength": 2, "pattern": "^[a-z]+$" }
        },
        "required": ["mode", "other"],
        "additionalProperties": false,
        "$defs": { "item": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] } }
    });
    let value = json!({
        "items": [{ "name": 1 }, {}],
        "mode": "c",
        "headers": { "content-type": 1 },
        "either": 2,
        "count": -1,
        "text": "A",
        "extra": true
    });
    let mut found = violations(&schema, &value);
    found.sort();
    let expected = [
        ("input.count", "must be a multiple of 2, is -1"),
        ("input.count", "must be at least 1, is -1"),
        ("input.either", "matches none of the 2 allowed schemas (closest: must be of type string, is integer)"),
        ("input.extra", "is not a property of the schema"),
        ("input.headers[\"content-type\"]", "must be of type string, is integer"),
        ("input.items[0].name", "must be of type string, is integer"),
        ("input.items[1].name", "is required"),
        ("input.mode", "must be one of [\"a\",\"b\"]"),
        ("input.other", "is required"),
        ("input.text", "must have at least 2 characters"),
        ("input.text", "must match the pattern ^[a-z]+$"),
    ];
    let found: Vec<(&str, &str)> = found.iter().map(|(field, message)| (field.as_str(), message.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_missing_alternative_is_named() {
    let alternatives = json!([{ "required": ["seconds"] }, { "required": ["ms"] }]);
    for keyword in ["oneOf", "anyOf"] {
        let schema = json!({ "type": "object", "properties": { "wait": { keyword: alternatives } } });
        let found = violations(&schema, &json!({ "wait": { "secs": 1 } }));
        assert_eq!(found, [("input.wait".to_owned(), "must have seconds or ms".to_owned())], "{keyword}");
    }
    let typed =
        json!({ "anyOf": [{ "required": ["a"], "properties": { "a": { "type": "string" } } }, { "required": ["b"] }] });
    assert!(violations(&typed, &json!({ "a": 1 }))[0].1.starts_with("matches none of the 2 allowed schemas"));
}

#[test]
fn a_property_that_is_nearly_right_is_suggested() {
    let options = json!({ "type": "object", "properties": { "deadline": true }, "additionalProperties": false });
    let schema = json!({
        "type": "object",
        "properties": { "expression": { "type": "string" }, "options": options },
        "additionalProperties": false
    });
    let found = violations(&schema, &json!({ "expresion": "1", "options": { "deadlin": 1, "other": 1 } }));
    let mut found: Vec<String> = found.iter().map(|(field, message)| format!("{field}: {message}")).collect();
    found.sort();
    let expected = [
        "input.expresion: is not a property of the schema; did you mean expression?",
        "input.options.deadlin: is not a property of the schema; did you mean deadline?",
        "input.options.other: is not a property of the schema",
    ];
    assert_eq!(found, expected);
}

#[test]
fn paths_without_a_root_start_at_the_value() {
    let schema = Schema::compile(&json!({ "type": "object", "properties": { "a": { "type": "string" } } })).unwrap();
    assert_eq!(schema.check(&json!({ "a": 1 }))[0].field, "a");
    assert_eq!(schema.check(&json!(1))[0].field, "");
    assert_eq!(schema.check(&json!({ "a": "x" })), []);
}

#[test]
fn violations_are_bounded_in_number_and_size() {
    let items: Vec<Value> = (0..10_000).map(|_| json!("x".repeat(100))).collect();
    let found = violations(&json!({ "type": "array", "items": { "type": "integer" } }), &json!(items));
    assert_eq!(found.len(), MAX_VIOLATIONS);
    let names: serde_json::Map<String, Value> = (0..10_000).map(|n| (format!("{n}"), json!(1))).collect();
    let found =
        violations(&json!({ "properties": { "a": true }, "additionalProperties": false }), &Value::Object(names));
    assert_eq!(found.len(), MAX_VIOLATIONS);
    let found = violations(&json!({ "additionalProperties": false }), &json!({ "a": { "b": 1 } }));
    assert_eq!(found, [("input".to_owned(), "must have no properties".to_owned())]);
    let long = "k".repeat(100_000);
    let schema = json!({ "additionalProperties": { "enum": [long.clone(), 2] }, "required": [long] });
    for (field, message) in violations(&schema, &json!({ "y".repeat(100_000): "z".repeat(100_000) })) {
        assert!(field.len() < 2000 && message.len() < 2000, "{} and {}", field.len(), message.len());
    }
}

#[test]
fn schema_errors_name_their_place() {
    for (schema, field) in [
        (json!({ "type": "nope" }), "type"),
        (json!({ "properties": { "a": { "minimum": "1" } } }), "properties.a.minimum"),
        (json!({ "required": "a" }), "required"),
        (json!({ "properties": { "a": 1 } }), "properties.a"),
        (json!({ "$ref": "#/$defs/none" }), "$ref"),
        (json!({ "properties": { "a": { "$ref": "#nowhere" } } }), "properties.a.$ref"),
        (json!({ "$ref": "https://example.com/x.json" }), "$ref"),
        (json!({ "$ref": "file:///etc/passwd" }), "$ref"),
        (json!({ "$ref": "other.json#/a" }), "$ref"),
        (json!({ "$schema": "http://json-schema.org/draft-07/schema#" }), "$schema"),
        (json!({ "properties": { "a": { "$id": "https://example.com/a" } } }), "properties.a.$id"),
        (json!("string"), ""),
        (json!(null), ""),
    ] {
        let refused = refusal(&schema);
        assert!(refused.starts_with(field), "{schema}: {refused}");
    }
    Schema::compile(&json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object" })).unwrap();
    Schema::compile(&json!(true)).unwrap();
}

#[test]
fn ref_as_a_property_name_is_data() {
    let schema = json!({
        "properties": { "$ref": { "type": "string" }, "x": { "const": { "$ref": "http://x" } } },
        "examples": [{ "$ref": "http://y" }],
        "default": { "$id": "z" }
    });
    assert_eq!(violations(&schema, &json!({ "$ref": "a", "x": { "$ref": "http://x" } })), []);
}

#[test]
fn local_references_of_every_kind_work() {
    let schema = json!({
        "$id": "https://example.com/root",
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": { "$anchor": "tree", "type": "object", "properties": {
                "kids": { "type": "array", "items": { "$ref": "#tree" } },
                "a/b": { "$ref": "#/$defs/a~1b%20c" }
            } },
            "a/b c": { "type": "integer" }
        }
    });
    let found = violations(&schema, &json!({ "kids": [{ "kids": [{ "a/b": "x" }] }] }));
    assert_eq!(found[0].0, "input.kids[0].kids[0][\"a/b\"]");
}

#[test]
fn format_is_not_checked() {
    assert_eq!(violations(&json!({ "format": "email" }), &json!("no mail")), []);
}

#[test]
fn patterns_run_in_linear_time() {
    let schema = json!({ "type": "string", "pattern": "^(a+)+$" });
    let text = format!("{}b", "a".repeat(100_000));
    assert_eq!(violations(&schema, &json!(text)).len(), 1);
    for pattern in ["(?=a)b", "(a)\\1", "(?<!x)y", "a{1,1000}{1,1000}{1,1000}", "("] {
        refusal(&json!({ "pattern": pattern }));
        refusal(&json!({ "patternProperties": { pattern: true } }));
    }
}

#[test]
fn cyclic_and_exponential_schemas_are_refused() {
    let mut chain = serde_json::Map::new();
    for n in 0..1500 {
        chain.insert(format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) }));
    }
    chain.insert("d1500".into(), json!(true));
    let mut doubling = serde_json::Map::new();
    for n in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        doubling.insert(format!("d{n}"), json!({ "allOf": [next, next] }));
    }
    doubling.insert("d30".into(), json!({ "type": "string" }));
    let deep = (0..200).fold(json!(true), |inner, _| json!({ "not": inner }));
    let wide: Vec<Value> = (0..3000).map(|_| json!({ "type": "string" })).collect();
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "anyOf": [{ "$ref": "#/$defs/a" }] } } }),
        json!({ "$dynamicRef": "#x", "$dynamicAnchor": "x" }),
        json!({ "if": { "$ref": "#" } }),
        json!({ "$ref": "#/$defs/d0", "$defs": chain }),
        json!({ "$ref": "#/$defs/d0", "$defs": doubling }),
        deep,
        json!({ "anyOf": wide }),
        json!({ "description": "x".repeat(300_000) }),
    ] {
        refusal(&schema);
    }
}

#[test]
fn a_schema_that_grows_with_the_value_refuses_deep_values() {
    let twice = json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } }, "type": "object" });
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert_eq!(violations(&twice, &nested(5)), []);
    assert!(violations(&twice, &nested(60))[0].1.contains("too deep"));
    // One visit per place is safe at any depth.
    let once = json!({ "properties": { "a": { "$ref": "#" } }, "type": "object" });
    assert_eq!(violations(&once, &nested(100)), []);
    assert!(violations(&once, &nested(500))[0].1.contains("deeper than"));
}

#[test]
fn longest_accepted_chains_fit_a_small_stack() {
    let mut chain = serde_json::Map::new();
    for n in 0..18 {
        chain.insert(format!("d{n}"), json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }] }));
    }
    chain.insert("d18".into(), json!({ "properties": { "a": { "$ref": "#/$defs/d0" } } }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": chain });
    let value = (0..120).fold(json!({}), |inner, _| json!({ "a": inner }));
    std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(move || assert_eq!(violations(&schema, &value), []))
        .unwrap()
        .join()
        .unwrap();
}

fn many_required(names: usize) -> Value {
    json!({"items": {"required": (0..names).map(|n| format!("n{n}")).collect::<Vec<_>>()}})
}

/// The validator collects an error for each missing name of each object before it returns the
/// first: 1 KB with 300 objects took 1.2 GB.
#[test]
fn errors_of_missing_names_are_bounded() {
    let schema = Schema::compile(&many_required(10_000)).unwrap();
    let objects = json!(vec![json!({}); 300]);
    assert!(!schema.is_quick(&objects));
    let found = schema.check(&objects);
    assert_eq!((found.len(), found[0].field.as_str()), (1, "[0].n0"));
    let dependent = json!({"items": {"dependentRequired": {"a": many_required(10_000)["items"]["required"]}}});
    let dependent = Schema::compile(&dependent).unwrap();
    let objects = json!(vec![json!({"a": 1}); 300]);
    assert!(!dependent.is_quick(&objects));
    assert_eq!(dependent.check(&objects).len(), 1);
    // All errors are reported where there are few.
    let few = Schema::compile(&many_required(3)).unwrap();
    assert!(few.is_quick(&json!([{}, {}, {}])));
    assert_eq!(few.check(&json!([{}, {}, {}])).len(), 9);
    assert_eq!(few.check(&json!([{"n0": 1, "n1": 1, "n2": 1}])), []);
}

/// Each of these errors contains a copy of something: the name that is missing, the path to it, the
/// schema that must not match, or the whole value.
#[test]
fn errors_with_large_copies_are_bounded() {
    let long = "x".repeat(50_000);
    let branches: Vec<Value> = (0..1000).map(|n| json!({"const": n})).collect();
    let objects = || json!(vec![json!({}); 3000]);
    let below = |key: &str, schema: Value| json!({"properties": {key: schema}});
    for (schema, value) in [
        (json!({"items": {"required": [long]}}), objects()),
        (json!({"items": {"not": {"properties": {"a": {"description": long}}}}}), objects()),
        (below(&long, many_required(1000)["items"].clone()), json!({long.clone(): {}})),
        (json!({"allOf": branches}), json!({"a": vec![1; 10_000]})),
        (json!({"propertyNames": {"allOf": branches}}), json!({"x".repeat(100_000): 1})),
        (json!({"anyOf": [many_required(1000)["items"]]}), json!({"a": vec![1; 10_000]})),
        (json!({"oneOf": [{"items": many_required(1000)}]}), json!([vec![json!({}); 300]])),
    ] {
        let compiled = Schema::compile(&schema).unwrap();
        assert!(!compiled.is_quick(&value));
        let found = compiled.check(&value);
        assert_eq!(found.len(), 1, "{:.200} {:.200}", schema.to_string(), found[0].message);
    }
}

/// To find what is unevaluated, the validator checks everything at the same place once more. Each
/// level more than doubled the time.
#[test]
fn nested_unevaluated_keywords_are_counted() {
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        let nested = |depth: usize| {
            (0..depth).fold(json!({"minProperties": 1}), |inner, _| json!({"anyOf": [inner, true], keyword: true}))
        };
        assert_eq!(violations(&nested(3), &json!({"a": [1]})), []);
        assert!(refusal(&nested(18)).contains("too many schemas at one place"));
        let big = json!({"allOf": (0..900).map(|n| json!({"title": n.to_string()})).collect::<Vec<_>>()});
        let use_of = |n: usize| (format!("p{n}"), json!({"$ref": "#/$defs/big", keyword: false}));
        let uses: serde_json::Map<_, _> = (0..100).map(use_of).collect();
        let refused = refusal(&json!({"$defs": {"big": big}, "properties": uses}));
        assert!(refused.contains("too many schemas beside"), "{refused}");
    }
}

/// A check of a large value is not quick, nor is one of a small value that a schema visits often.
#[test]
fn a_check_is_quick_only_where_it_costs_little() {
    let plain = Schema::compile(&json!({"type": "object"})).unwrap();
    for value in [json!({}), json!({"a": 1, "b": [1, 2, 3]}), json!("text"), json!("x".repeat(10_000))] {
        assert!(plain.is_quick(&value), "{value}");
    }
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    for value in [json!("x".repeat(2_000_000)), json!(vec![1; 100_000]), json!({"many": vec![vec![1; 60]; 1000]}), deep]
    {
        assert!(!plain.is_quick(&value));
    }
    // Each place is visited thousands of times.
    let mut definitions = serde_json::Map::from_iter([("d0".to_owned(), json!({"type": "string"}))]);
    for level in 1..=11 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        definitions.insert(format!("d{level}"), json!({"allOf": [below, below]}));
    }
    let often = json!({"$ref": "#/$defs/d11", "items": {"$ref": "#/$defs/d11"}, "$defs": definitions});
    if let Ok(often) = Schema::compile(&often) {
        assert!(!often.is_quick(&json!(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"])));
    }
}

fn patterns(count: usize) -> Value {
    let pattern = |n: usize| (format!("p{n}"), json!({"pattern": format!("\\p{{L}}{{20}}{n}")}));
    json!({"properties": (0..count).map(pattern).collect::<serde_json::Map<_, _>>()})
}

/// Without a limit, 1,500 such patterns in 58 KB took 2.8 GB.
#[test]
fn the_patterns_of_a_schema_are_bounded_together() {
    Schema::compile(&patterns(1)).unwrap();
    let refused = refusal(&patterns(1500));
    assert!(refused.starts_with("properties.p") && refused.contains("exceeds the limit for patterns"), "{refused}");
    // The same pattern is compiled once.
    let same = json!({"pattern": "\\p{L}{20}"});
    Schema::compile(&json!({"properties": {"a": same, "b": same, "c": same}, "items": same})).unwrap();
    let of_names: serde_json::Map<_, _> = (0..100).map(|n| (format!("\\p{{L}}{{20}}{n}"), json!(true))).collect();
    assert!(refusal(&json!({"patternProperties": of_names})).starts_with("patternProperties"));
    assert!(refusal(&json!({"pattern": "a".repeat(5000)})).contains("at most 4096"));
    assert!(refusal(&json!({"pattern": "\\cA".repeat(20)})).contains("control escapes"));
}

#[test]
fn schema_budget_is_bounded_and_released() {
    let budget = Budget::new(5_000_000);
    let first = Schema::compile_within(&patterns(2), &budget).unwrap();
    let refused = Schema::compile_within(&patterns(2), &budget).unwrap_err().to_string();
    assert!(refused.contains("more than is left of the 5000000"), "{refused}");
    drop(first);
    Schema::compile_within(&patterns(2), &budget).unwrap();
    // A schema that is refused for another reason uses no budget.
    Schema::compile_within(&json!({"type": "nope"}), &Budget::new(10_000)).unwrap_err();
}

/// Resident bytes of this process.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// A regular expression keeps a cache for each thread that used it: 900 patterns and 12 values of
/// 1 KB took 650 MB, and kept them.
#[cfg(target_os = "linux")]
#[test]
fn caches_of_patterns_do_not_grow_with_their_number() {
    // In a process of its own: the other tests of this one use memory too.
    if std::env::var_os("RCRT_TEST_ALONE").is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "schema::caches_of_patterns_do_not_grow_with_their_number", "--nocapture"]);
        let output = alone.env("RCRT_TEST_ALONE", "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let pattern = |n: usize| (format!("p{n}"), json!({"pattern": format!("^([ab]*a[ab]{{10}}|{n})[d-z]")}));
    let schema = json!({"properties": (0..900).map(pattern).collect::<serde_json::Map<_, _>>()});
    let schema = Schema::compile(&schema).unwrap();
    let text = |seed: usize| -> String {
        let letter = |n: usize| if (n * n * seed + n / 3).count_ones().is_multiple_of(2) { 'a' } else { 'b' };
        (0..1000).map(letter).chain("aaaaaaaaaaad".chars()).collect()
    };
    let before = resident();
    std::thread::scope(|scope| {
        for seed in 1..5 {
            let (schema, text) = (&schema, text(seed));
            scope.spawn(move || {
                let value: serde_json::Map<_, _> = (0..900).map(|n| (format!("p{n}"), json!(text))).collect();
                assert_eq!(schema.check(&Value::Object(value)), []);
            });
        }
    });
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "{grown}");
}

/// The validator's own expressions keep their caches, so these are charged.
#[test]
fn caches_of_property_patterns_are_charged() {
    let names = |of: &dyn Fn(usize) -> String, count: usize| {
        let names: serde_json::Map<_, _> = (0..count).map(|n| (of(n), json!(true))).collect();
        json!({"patternProperties": names})
    };
    let small = |n: usize| format!("^[a-z]+{n}$");
    Schema::compile(&names(&small, 5)).unwrap();
    Schema::compile(&json!({"patternProperties": {"^[a-zA-Z_][a-zA-Z0-9_]{0,63}$": true}})).unwrap();
    assert!(refusal(&names(&small, 100)).contains("exceeds the limit for patterns"));
    // Each use has its own caches.
    let same: serde_json::Map<_, _> = (0..100).map(|n| (format!("p{n}"), names(&small, 1))).collect();
    assert!(refusal(&json!({"properties": same})).contains("exceeds the limit for patterns"));
    // Positions are kept for each state and each group.
    assert!(refusal(&names(&|n| format!(r"{}{n}\b", "(a)".repeat(500)), 1)).contains("exceeds the limit for patterns"));
    // Literal names need no caches.
    Schema::compile(&names(&|n| format!("^x{n}-"), 100)).unwrap();
    let budget = Budget::new(300_000);
    assert!(Schema::compile_within(&names(&small, 1), &budget).is_err());
    Schema::compile_within(&json!({"pattern": "^[a-z]+1$"}), &budget).unwrap();
}

/// Each byte may be matched against each state of a pattern.
#[test]
fn text_too_long_for_its_pattern_is_refused() {
    let schema = json!({"pattern": "a{1,1000}b"});
    assert_eq!(violations(&schema, &json!(format!("{}b", "a".repeat(1000)))), []);
    assert!(violations(&schema, &json!("a".repeat(1_000_000)))[0].1.contains("too large"));
    let names = json!({"patternProperties": {"a{1,100}b": true}});
    let value = json!({"a".repeat(1_000_000): 1});
    assert!(violations(&names, &value)[0].1.contains("too large"));
    let plain = json!({"pattern": "^[a-z]*$"});
    assert_eq!(violations(&plain, &json!("a".repeat(1_000_000))), []);
}

/// Without hashing, 31,000 numbers and a text were compared one by one with 20,000 items: 620
/// million comparisons.
#[test]
fn enum_lookup_uses_hashes() {
    let mut values: Vec<Value> = (0..31_000).map(Value::from).collect();
    values.push(json!("x"));
    let schema = Schema::compile(&json!({"items": {"enum": values}})).unwrap();
    assert_eq!(schema.check(&json!(vec![30_999.0; 20_000])), []);
    assert_eq!(schema.check(&json!(vec![0.5; 20_000])).len(), MAX_VIOLATIONS);
    let found = schema.check_as("input", &json!([1, "y"]));
    assert_eq!(found[0].field, "input[1]");
    assert!(found[0].message.starts_with("must be one of [0,1,2"), "{}", found[0].message);
}

/// The validator's own hash is the same for all of these.
#[test]
fn colliding_items_do_not_slow_down_unique_items() {
    let bits = |number: u32| (0..17).map(|bit| if number >> bit & 1 == 0 { json!([]) } else { json!([[]]) }).collect();
    let items: Vec<Value> = (0..60_000).map(bits).map(Value::Array).collect();
    let schema = json!({"uniqueItems": true});
    assert_eq!(violations(&schema, &Value::Array(items.clone())), []);
    let twice = [&items[..100], &items[50..51]].concat();
    assert_eq!(
        violations(&schema, &Value::Array(twice)),
        [("input".to_owned(), "must not have duplicate items".to_owned())]
    );
    assert_eq!(violations(&json!({"uniqueItems": false}), &json!([1, 1])), []);
    assert_eq!(violations(&json!({"const": {"a": 1}}), &json!({"a": 1.0})), []);
    assert_eq!(violations(&json!({"const": 1}), &json!(2)), [("input".to_owned(), "must be 1".to_owned())]);
}

/// A definition that is referenced twice at each of many levels is compiled once.
#[test]
fn repeated_references_are_compiled_once() {
    let mut definitions = serde_json::Map::new();
    for n in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(format!("d{n}"), json!({"properties": {"a": next, "b": next}}));
    }
    definitions.insert("d60".into(), json!({"type": "string"}));
    Schema::compile(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).unwrap();
}

fn small() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2_i32..3).prop_map(Value::from),
        (-4_i32..5).prop_map(|n| json!(f64::from(n) / 2.0)),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec(("[ab]", inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The validator itself is the reference: it compares one by one if there is one value, or few
    /// items.
    #[test]
    fn hash_lookup_agrees_with_comparison(values in proptest::collection::vec(small(), 1..8), value in small()) {
        let of_one = |wanted: &Value| jsonschema::validator_for(&json!({"const": wanted})).unwrap().is_valid(&value);
        let expected = values.iter().any(of_one);
        let by_enum = Schema::compile(&json!({"enum": values})).unwrap();
        prop_assert_eq!(by_enum.check(&value).is_empty(), expected);
        let by_const = Schema::compile(&json!({"const": values[0]})).unwrap();
        prop_assert_eq!(by_const.check(&value).is_empty(), of_one(&values[0]));
        let is_unique = jsonschema::validator_for(&json!({"uniqueItems": true})).unwrap().is_valid(&json!(values));
        let unique = Schema::compile(&json!({"uniqueItems": true})).unwrap();
        prop_assert_eq!(unique.check(&json!(values)).is_empty(), is_unique);
    }
}
