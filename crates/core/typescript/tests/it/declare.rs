//! JSON Schemas as types.

use proptest::prelude::*;
use rcrt_typescript::{Dialect, compile, declare, pascal_case, unique};
use serde_json::{Map, Value, json};

fn of(schema: &Value) -> String {
    declare("Input", schema).trim_end().to_owned()
}

#[test]
fn an_object_has_its_members_with_their_comments() {
    let schema = json!({
        "type": "object",
        "description": "What to search for.",
        "properties": {
            "query": {"type": "string", "description": "Words.\nAll of them */ must occur."},
            "limit": {"type": "integer", "default": 10},
            "x-kind": {"type": ["string", "null"], "deprecated": true},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let expected = "\
/** What to search for. */
type Input = {
  /**
   * Words.
   * All of them *\\/ must occur.
   */
  query: string;
  /** @default 10 */
  limit?: number;
  /** @deprecated */
  \"x-kind\"?: string | null;
};";
    assert_eq!(of(&schema), expected);
}

#[test]
fn each_keyword_has_its_type() {
    for (schema, expected) in [
        (json!(true), "unknown"),
        (json!(false), "never"),
        (json!({}), "unknown"),
        (json!({"type": "integer"}), "number"),
        (json!({"const": "a\u{2028}\"b"}), r#""a\u2028\"b""#),
        (json!({"enum": ["a", 1, null, true, [1], {"k": -0.5}, "a"]}), r#""a" | 1 | null | true | [1] | { k: -0.5; }"#),
        (json!({"type": "array"}), "Array<unknown>"),
        (json!({"type": "array", "items": {"type": ["string", "number"]}}), "Array<string | number>"),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"enum": [1, 2]}], "minItems": 1, "items": false}),
            "[string, (1 | 2)?]",
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}}),
            "[string?, ...Array<number>]",
        ),
        (json!({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "maxItems": 1}), "[string]"),
        (json!({"type": "object"}), "{ [key: string]: unknown }"),
        (json!({"type": "object", "additionalProperties": false}), "{ [key: string]: never }"),
        (json!({"type": "object", "additionalProperties": {"type": "number"}}), "{ [key: string]: number }"),
        (
            json!({"type": "object", "patternProperties": {"^a": {"type": "string"}}, "additionalProperties": false}),
            "{ [key: string]: string }",
        ),
        (
            json!({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}}),
            "{\n  a?: string;\n  [key: string]: unknown;\n}",
        ),
        (json!({"required": ["b"]}), "{\n  b: unknown;\n}"),
        (json!({"oneOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}), "string | null"),
        (json!({"anyOf": [{"type": "string"}, {}]}), "unknown"),
        (
            json!({"allOf": [{"enum": ["a", "b"]}, {"type": "string"}, {"anyOf": [{"const": "a"}, {"const": "c"}]}]}),
            r#"("a" | "b") & string & ("a" | "c")"#,
        ),
    ] {
        assert_eq!(of(&schema), format!("type Input = {expected};"), "{schema}");
    }
}

#[test]
fn references_have_names_of_their_own() {
    let schema = json!({
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/tree-node"},
            "again": {"$ref": "#/$defs/tree-node"},
            "self": {"$ref": "#"},
            "elsewhere": {"$ref": "https://example.com/schema"},
            "nowhere": {"$ref": "#/$defs/none"},
            "circle": {"$ref": "#/$defs/circle"},
        },
        "$defs": {
            "tree-node": {"description": "A node.", "type": "array", "items": {"$ref": "#/$defs/tree-node"}},
            "circle": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/circle"}]},
        },
    });
    let expected = "\
type Input = {
  tree?: InputTreeNode;
  again?: InputTreeNode;
  self?: Input;
  elsewhere?: unknown;
  nowhere?: unknown;
  circle?: unknown;
};
/** A node. */
type InputTreeNode = Array<InputTreeNode>;";
    assert_eq!(of(&schema), expected);
}

#[test]
fn names_are_identifiers_and_free() {
    for (name, expected) in [("read_file", "ReadFile"), ("a-b.c", "ABC"), ("ünï", "N"), ("7z", "7z"), ("__", "")] {
        assert_eq!(pascal_case(name), expected);
    }
    assert_eq!(unique("A", |name| ["A", "A2"].contains(&name)), "A3");
    assert_eq!(unique("B", |_| false), "B");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just("*/ } ` ${a} \\".to_owned()), Just("constructor".to_owned()), "[a-z$_]{1,6}", any::<String>(),]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..3).prop_map(object),
        ]
    })
}

fn object(fields: Vec<(String, Value)>) -> Value {
    Value::Object(fields.into_iter().collect::<Map<_, _>>())
}

/// Schemas and what is like one: keywords with values of any kind.
fn schema() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec!["string", "integer", "object", "array", "null", "boolean", "other"]);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (types.clone(), text()).prop_map(|(of, text)| json!({"type": of, "description": text})),
        value().prop_map(|value| json!({"const": value, "default": value})),
        prop::collection::vec(value(), 0..4).prop_map(|values| json!({"enum": values})),
        prop::sample::select(vec!["#", "#/$defs/a", "#/$defs/b", "#/none", "other.json"])
            .prop_map(|target| json!({"$ref": target})),
        (
            prop::sample::select(vec!["type", "items", "properties", "required", "anyOf", "$ref", "prefixItems"]),
            value()
        )
            .prop_map(|(keyword, value)| object(vec![(keyword.to_owned(), value)])),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let several = prop::collection::vec(inner.clone(), 0..4);
        let members = prop::collection::vec((text(), inner.clone()), 0..4);
        prop_oneof![
            (members, prop::collection::vec(text(), 0..2), prop::option::of(inner.clone())).prop_map(
                |(members, required, others)| {
                    let mut schema = json!({"type": "object", "properties": object(members), "required": required});
                    if let Some(others) = others {
                        schema["additionalProperties"] = others;
                    }
                    schema
                }
            ),
            (several.clone(), inner.clone(), 0_u64..4)
                .prop_map(|(first, rest, least)| json!({"prefixItems": first, "items": rest, "minItems": least})),
            (prop::sample::select(vec!["anyOf", "oneOf", "allOf"]), several, types.clone())
                .prop_map(|(keyword, parts, of)| json!({"type": [of, "null"], keyword: parts})),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(root, a, b)| json!({"properties": {"x": root}, "$defs": {"a": a, "b": b}})),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_is_declared_with_valid_syntax(schema in schema()) {
        let declared = declare("Input", &schema);
        let compiled = compile(&declared, "types.ts", Dialect::TypeScript);
        prop_assert!(compiled.is_ok(), "{:?}\n{declared}", compiled.err());
        // A description cannot end its comment: nothing but types is declared.
        prop_assert!(compiled.unwrap().javascript.replace("export {};", "").trim().is_empty(), "{declared}");
    }
}
