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
    ] {
        assert_eq!(source.to_string(), text);
        assert_eq!(text.parse::<ToolSource>().unwrap(), source);
        assert_eq!(serde_json::to_value(&source).unwrap(), text);
        assert_eq!(serde_json::from_value::<ToolSource>(json!(text)).unwrap(), source);
    }
    for text in ["", "Native", "mcp:", "http"] {
        assert!(text.parse::<ToolSource>().unwrap_err().contains("mcp:<server>"), "{text:?}");
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
