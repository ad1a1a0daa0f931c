//! Any input gets a result and never a panic.

use proptest::prelude::*;
use rcrt_breadcrumb::ToolDefinition;
use rcrt_validate::{MAX_VIOLATIONS, Schema, seed};
use serde_json::{Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,8}", inner, 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

const KEYWORDS: &[&str] = &[
    "type",
    "properties",
    "required",
    "items",
    "prefixItems",
    "$ref",
    "$defs",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "pattern",
    "patternProperties",
    "additionalProperties",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "propertyNames",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$id",
    "$schema",
    "dependentSchemas",
    "dependentRequired",
    "unevaluatedProperties",
    "unevaluatedItems",
    "format",
    "default",
    "description",
    "$recursiveRef",
    "$vocabulary",
    "contentSchema",
];

/// JSON that looks like a schema.
fn schema_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-3i64..100).prop_map(Value::from),
        prop::sample::select(vec![
            "object",
            "array",
            "string",
            "integer",
            "a",
            "b",
            "#",
            "#/$defs/a",
            "#/properties/a",
            "#a",
            "^a+$",
            "(",
            "",
            "http://x/y",
        ])
        .prop_map(Value::from),
        Just(json!(["a"])),
        Just(json!({})),
    ];
    leaf.prop_recursive(5, 60, 5, |inner| {
        let name = prop_oneof![
            prop::sample::select(KEYWORDS).prop_map(str::to_owned),
            prop::sample::select(vec!["a".to_owned(), "b".to_owned(), "c/d~e".to_owned()]),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_compiles_or_is_refused(schema in schema_like(), value in any_json(), other in schema_like()) {
        if let Ok(compiled) = Schema::compile(&schema) {
            prop_assert!(compiled.check(&value).len() <= MAX_VIOLATIONS);
            prop_assert!(compiled.check(&other).len() <= MAX_VIOLATIONS);
        }
    }

    #[test]
    fn any_json_is_a_schema_or_is_refused(schema in any_json(), value in any_json()) {
        if let Ok(compiled) = Schema::compile(&schema) {
            compiled.check(&value);
        }
    }

    #[test]
    fn any_definition_gets_a_report(
        input in schema_like(),
        output in any_json(),
        source in "\\PC{0,80}",
        examples in prop::collection::vec(any_json(), 0..3),
        hosts in prop::collection::vec("\\PC{0,20}", 0..7),
        secrets in prop::collection::vec("\\PC{0,10}", 0..3),
    ) {
        let examples: Vec<Value> = examples.into_iter().map(|value| json!({"input": value, "output": value})).collect();
        let context = json!({
            "name": "t", "code": {"language": "typescript", "source": source}, "input_schema": input,
            "output_schema": output, "examples": examples, "permissions": {"net": hosts}, "required_secrets": secrets
        });
        if let Ok(definition) = ToolDefinition::read("tool.code.v1", context.as_object().unwrap(), None, None) {
            rcrt_validate::tool(&definition);
        }
    }

    #[test]
    fn any_file_is_read_or_is_refused(text in "\\PC{0,100}", value in any_json(), source in "\\PC{0,20}") {
        let _ = seed::read("x.json", &text, None);
        let _ = seed::read("x.json", &value.to_string(), Some(&source));
        let _ = seed::read("x.json", &json!({"schema_name": "tool.code.v1", "title": "t", "context": value}).to_string(), Some(&source));
    }
}
