use breadcrumb::{Registration, ToolSource};
use serde_json::{Value, json};
use utoipa::{PartialSchema, ToSchema};

#[test]
fn a_source_is_a_plain_text_everywhere() {
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

/// So a kind that nobody has thought of is never taken for one that profiles allow.
#[test]
fn each_kind_of_executor_is_a_source_of_its_own() {
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
fn its_schema_is_that_of_a_text() {
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
