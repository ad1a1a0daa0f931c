use proptest::prelude::*;
use rcrt_breadcrumb::{AccessList, BootstrapMode, Implementation, Isolation, Language, ToolDefinition};
use serde_json::{Value, json};

use crate::object;

fn code(extra: Value) -> Result<ToolDefinition, Vec<String>> {
    let mut context = object(json!({
        "name": "greet", "description": "Greets.",
        "code": {"language": "typescript", "source": "export async function execute() { return {}; }"},
    }));
    context.extend(object(extra));
    ToolDefinition::read("tool.code.v1", &context, None, Some("1.2.0"))
        .map_err(|found| found.0.into_iter().map(|one| one.field).collect())
}

#[test]
fn all_fields_of_a_code_tool_are_read() {
    let tool = code(json!({
        "isolation": "tool",
        "permissions": {"net": ["api.example.com"]},
        "limits": {"timeout_ms": 500},
        "bootstrap": {"enabled": true, "mode": "continuous", "wait_for": ["other"]},
        "subscriptions": {"selectors": [{"schema_name": "note.v1"}]},
    }))
    .unwrap();
    assert_eq!((tool.name.as_str(), tool.version.as_str()), ("greet", "1.2.0"));
    assert_eq!(tool.permissions.net, AccessList::Listed(vec!["api.example.com".into()]));
    assert_eq!((tool.limits.timeout_ms, tool.limits.max_attempts), (500, 1));
    assert_eq!(tool.subscriptions[0].schema_name.as_deref(), Some("note.v1"));
    let bootstrap = tool.bootstrap.clone().unwrap();
    assert_eq!((bootstrap.mode, bootstrap.priority), (BootstrapMode::Continuous, 100));
    let Implementation::Code(code) = tool.implementation else { panic!("not code") };
    assert_eq!((code.language, code.isolation), (Language::Typescript, Isolation::Tool));
}

#[test]
fn lookalike_tool_names_are_refused() {
    // Cyrillic, Greek and full-width letters, invisible characters, combining marks, and a reversed
    // direction.
    for name in [
        "gr\u{435}et",
        "\u{261}reet",
        "gree\u{3c4}",
        "\u{ff47}reet",
        "gre\u{200b}et",
        "greet\u{feff}",
        "gree\u{301}t",
        "\u{202e}teerg",
        "gre\u{ad}et",
        " greet",
        "greet ",
        "greet\u{a0}",
        "greet\n",
        "greet\0",
        "gr/eet",
        "gr\\eet",
    ] {
        assert_eq!(code(json!({"name": name})).unwrap_err(), ["name"], "{name:?}");
    }
}

#[test]
fn every_invalid_field_is_reported() {
    let wrong = json!({
        "name": "9 lives", "limits": {"timeout_ms": 0}, "permissions": {"net": 5}, "colour": "red",
        "subscriptions": [{}], "code": {"language": "python", "source": ""},
    });
    let mut fields = code(wrong).unwrap_err();
    fields.sort();
    assert_eq!(fields, ["code.language", "limits.timeout_ms", "name", "permissions.net", "subscriptions[0]"]);
}

/// RCRT's own tools have more fields than the runtime, and tools of later versions may too.
#[test]
fn unknown_fields_are_reported_and_ignored() {
    let tool = code(json!({
        "category": "general", "capabilities": {"async": true}, "dependencies": [], "permisions": {"net": true},
        "permissions": {"net": ["api.example.com"], "breadcrumbs": {"read": ["note.v1"]}},
        "limits": {"timeout_ms": 500, "timeout": 1},
        "examples": [{"title": "One", "input": {}}, {"input": {}}],
        "annotations": {"read_only": true, "colour": "red"},
        "bootstrap": {"enabled": true, "when": "now"},
        "subscriptions": [{"schema_name": "note.v1", "description": "notes", "comment": "all of them", "role": "trigger"}],
    }))
    .unwrap();
    let mut fields: Vec<&str> = tool.ignored.0.iter().map(|one| one.field.as_str()).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "annotations.colour",
            "bootstrap.when",
            "capabilities",
            "dependencies",
            "examples[0].title",
            "permissions.breadcrumbs",
            "subscriptions[0].comment",
            "subscriptions[0].description",
            "subscriptions[0].role",
        ]
    );
    let said = |field: &str| &tool.ignored.0.iter().find(|one| one.field == field).unwrap().message;
    assert!(said("permissions.breadcrumbs").contains("whatever it lists"));
    let misspelled: Vec<String> = tool.misspelled.0.iter().map(ToString::to_string).collect();
    assert_eq!(
        misspelled,
        [
            "permisions: is not a known field; did you mean permissions?",
            "limits.timeout: is not a known field; did you mean timeout_ms?",
        ]
    );
    assert_eq!(tool.permissions.net, AccessList::Listed(vec!["api.example.com".into()]));
    assert_eq!((tool.limits.timeout_ms, tool.examples.len(), tool.annotations.read_only), (500, 2, true));
    assert_eq!(tool.category.as_deref(), Some("general"));
    assert!(tool.bootstrap.unwrap().enabled);
    // A selector that matches everything without its unknown fields matches too much.
    assert_eq!(code(json!({"subscriptions": [{"description": "all"}]})).unwrap_err(), ["subscriptions[0]"]);
}

#[test]
fn rcrt_tag_becomes_a_required_tag() {
    let selector = |selector: Value| code(json!({"subscriptions": [selector]})).unwrap().subscriptions.remove(0);
    assert_eq!(selector(json!({"tag": "a"})).all_tags, ["a"]);
    assert_eq!(selector(json!({"tag": "a", "all_tags": ["b"]})).all_tags, ["b", "a"]);
    let both = selector(json!({"tag": "a", "any_tags": ["b", "c"], "all_tags": null}));
    assert_eq!((both.any_tags, both.all_tags), (vec!["b".to_owned(), "c".to_owned()], vec!["a".to_owned()]));
    assert_eq!(code(json!({"subscriptions": [{"tag": 5, "schema_name": "a"}]})).unwrap_err(), ["subscriptions[0].tag"]);
}

#[test]
fn timeout_is_reduced_to_the_maximum() {
    let tool = code(json!({"limits": {"timeout_ms": 86_400_000_u64}})).unwrap();
    assert_eq!(tool.limits.timeout_ms, 900_000);
    assert_eq!(tool.ignored.0.len(), 1);
    assert_eq!(
        tool.ignored.0[0].to_string(),
        "limits.timeout_ms: is 86400000; it is reduced to the maximum, 900000 ms"
    );
    assert!(code(json!({"limits": {"timeout_ms": 900_000}})).unwrap().ignored.is_empty());
    for (limits, field) in [(json!("5s"), "limits"), (json!({"memory_mb": "64"}), "limits.memory_mb")] {
        assert_eq!(code(json!({"limits": limits})).unwrap_err(), [field]);
    }
}

#[test]
fn legacy_tool_retains_executor_settings() {
    let context = object(json!({
        "name": "weather",
        "definition": {"inputSchema": {"type": "object"}, "outputSchema": {"type": "string"}},
        "implementation": {"type": "http", "url": "https://api.example.com/{city}"},
    }));
    let tool = ToolDefinition::read("tool.v1", &context, Some("Weather."), None).unwrap();
    assert_eq!((tool.description.as_str(), tool.is_code()), ("Weather.", false));
    let Implementation::Native(native) = tool.implementation else { panic!("not native") };
    assert_eq!(
        (native.kind.as_str(), native.settings["url"].as_str()),
        ("http", Some("https://api.example.com/{city}"))
    );
}

#[test]
fn other_schemas_are_not_tools() {
    assert!(ToolDefinition::read("note.v1", &object(json!({})), None, None).is_err());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,6}", inner, 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reading_arbitrary_fields_never_panics(
        field in prop::sample::select(vec![
            "name", "code", "limits", "permissions", "examples", "subscriptions", "bootstrap", "isolation",
            "required_secrets", "input_schema",
        ]),
        value in any_json(),
    ) {
        let mut extra = serde_json::Map::new();
        extra.insert(field.to_owned(), value);
        let _ = code(Value::Object(extra.clone()));
        let _ = ToolDefinition::read("tool.v1", &extra, None, None);
    }
}

#[test]
fn subscriptions_are_bounded() {
    let refused = |subscriptions: Value| code(json!({"subscriptions": subscriptions})).unwrap_err();
    let one = json!({"schema_name": "note.v1"});
    code(json!({"subscriptions": vec![one.clone(); 20]})).unwrap();
    assert_eq!(refused(json!(vec![one; 21])), ["subscriptions"]);
    let many = json!({"context_match": [{"path": "$.a", "op": "contains_any", "value": vec![0; 30_000]}]});
    let fields = refused(json!([many]));
    assert!(fields.iter().all(|field| field.starts_with("subscriptions[0].context_match")), "{fields:?}");
}
