use rcrt_breadcrumb::{Registration, ToolSource};
use serde_json::{Value, json};
use utoipa::{PartialSchema, ToSchema};

#[test]
fn source_is_serialized_as_a_string() {
    for (source, text) in [
        (ToolSource::Native, "native"),
        (ToolSource::Sandbox, "sandbox"),
        (ToolSource::Rest, "rest"),
        (ToolSource::Mcp("files".into()), "mcp:files"),
        (ToolSource::Other("a2a".into()), "a2a"),
    ] {
        assert_eq!(source.to_string(), text);
        assert_eq!(text.parse::<ToolSource>().unwrap(), source);
        assert_eq!(serde_json::to_value(&source).unwrap(), text);
        assert_eq!(serde_json::from_value::<ToolSource>(json!(text)).unwrap(), source);
    }
    for text in ["", "Native", "mcp:", "mcp", "a b", "9lives"] {
        assert!(text.parse::<ToolSource>().unwrap_err().contains("mcp:<server>"), "{text:?}");
    }
}

/// So an unknown kind is never mistaken for one that profiles allow.
#[test]
fn unknown_executor_kinds_are_separate_sources() {
    for (kind, source) in [
        ("builtin", "native"),
        ("http", "rest"),
        ("rest", "rest"),
        ("a2a", "a2a"),
        ("native", "unknown"),
        ("sandbox", "unknown"),
        ("mcp", "unknown"),
        ("mcp:shell", "unknown"),
        ("No kind", "unknown"),
    ] {
        let found = ToolSource::of_executor(kind);
        assert_eq!(found.to_string(), source, "{kind}");
        assert_eq!(source.parse::<ToolSource>().unwrap(), found);
    }
}

#[test]
fn source_schema_is_a_string() {
    let schema = serde_json::to_value(ToolSource::schema()).unwrap();
    assert_eq!(schema["type"], "string", "{schema}");
    let mut found = Vec::new();
    Registration::schemas(&mut found);
    let named: Vec<Value> = found
        .iter()
        .filter(|(name, _)| name == "ToolSource")
        .map(|(_, schema)| serde_json::to_value(schema).unwrap())
        .collect();
    assert_eq!(named, [schema]);
}
