//! What of an http tool becomes code, and what is refused. That both do the same is tested where
//! code can run, in the crate `isolate`.

use rcrt_breadcrumb::{ToolDefinition, Violations};
use rcrt_executors::rest::{Conversion, convert};
use serde_json::{Value, json};

/// A convertible tool with these fields of its implementation, and these changes of its context.
fn converted(implementation: Value, changes: Value) -> Result<Conversion, Violations> {
    let mut context = json!({
        "name": "weather",
        "description": "The weather of a city.",
        "version": "1.2.0",
        "definition": {
            "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "outputSchema": {"type": "object"},
            "examples": [{"description": "one", "input": {"city": "Oslo"}}],
        },
        "implementation": {"type": "http", "url": "https://api.test/v1/{city}"},
        "limits": {"timeout_ms": 5000},
        "required_secrets": ["KEY"],
        "annotations": {"read_only": true},
    });
    context["implementation"].as_object_mut().unwrap().extend(implementation.as_object().unwrap().clone());
    context.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    convert(context.as_object().unwrap(), None)
}

#[test]
fn the_definition_keeps_its_fields() {
    let auth = json!({"auth": {"type": "bearer", "secret": "KEY"}});
    let Conversion { mut context, source } = converted(auth, json!({})).unwrap();
    assert_eq!(context["permissions"], json!({"net": ["api.test:443"]}));
    assert_eq!(context["limits"], json!({"timeout_ms": 5000}));
    let (version, schema) = (&context["version"], &context["output_schema"]);
    assert_eq!((version, schema), (&json!("1.2.0"), &json!({"type": "object"})));
    assert_eq!(context["input_schema"]["properties"]["city"], json!({"type": "string", "not": {"enum": [".."]}}));
    assert!(source.contains("const url = new URL(`https://api.test/v1/${encoded(input[\"city\"])}`);"), "{source}");
    assert!(source.contains("\"authorization\": `Bearer ${context.secrets[\"KEY\"]}`,"), "{source}");
    context.insert("code".into(), json!({"language": "typescript", "source": source}));
    let tool = ToolDefinition::read("tool.code.v1", &context, None, None).unwrap();
    assert!(tool.ignored.is_empty(), "{:?}", tool.ignored);
    assert!(tool.annotations.read_only);
}

#[test]
fn the_input_schema_requires_what_the_url_needs() {
    let schema = |schema: Value| {
        let definition = json!({"inputSchema": schema, "examples": [{"input": {}}]});
        converted(json!({"url": "https://api.test/?q={q}"}), json!({"definition": definition})).unwrap().context
            ["input_schema"]
            .clone()
    };
    let types = json!(["string", "number", "boolean"]);
    let open = schema(json!(true));
    assert_eq!((&open["type"], &open["required"]), (&json!("object"), &json!(["q"])));
    assert_eq!(open["properties"]["q"]["type"], types);
    let any = schema(json!({"properties": {"q": {"description": "Anything"}}}));
    assert_eq!(any["properties"]["q"], json!({"description": "Anything", "type": types}));
    let nullable = schema(json!({"properties": {"q": {"type": ["string", "null"]}}}));
    assert_eq!(nullable["properties"]["q"], json!({"allOf": [{"type": ["string", "null"]}, {"type": types}]}));
    let number = json!({"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"]});
    assert_eq!(schema(number.clone()), number);
}

#[test]
fn what_code_cannot_do_is_refused_with_its_field() {
    let twice = json!({"headers": {"X-API-Key": "a"}, "auth": {"type": "api_key", "secret": "KEY"}});
    let schema = |schema: Value| json!({"definition": {"inputSchema": schema, "examples": [{"input": {}}]}});
    for (implementation, changes, field) in [
        (json!({"type": "builtin"}), json!({}), "implementation.type"),
        (json!({"url": "https://{city}.test/"}), json!({}), "implementation.url"),
        (json!({"method": "TRACE"}), json!({}), "implementation.method"),
        (json!({"headers": {"a": "1", "A": "2"}}), json!({}), "implementation.headers"),
        (twice, json!({}), "implementation.headers"),
        (json!({"auth": {"type": "bearer", "secret": "OTHER"}}), json!({}), "implementation.auth.secret"),
        (json!({"body": {}}), json!({}), "implementation"),
        (json!({}), json!({"limits": {"max_attempts": 2}}), "limits.max_attempts"),
        (json!({}), json!({"description": ""}), "description"),
        (json!({}), json!({"definition": {}}), "definition.examples"),
        (json!({}), schema(json!({"type": "array"})), "definition.inputSchema.type"),
        (json!({}), schema(json!(false)), "definition.inputSchema"),
    ] {
        let found = converted(implementation.clone(), changes.clone()).unwrap_err();
        let fields: Vec<&str> = found.0.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, [field], "{implementation} {changes}: {found}");
    }
}
