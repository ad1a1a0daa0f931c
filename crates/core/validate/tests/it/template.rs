//! Filling a template's placeholders.

use std::collections::BTreeMap;

use rcrt_validate::template::Template;
use serde_json::json;

fn template() -> Template {
    let context = json!({
        "name": "t",
        "description": "A template.",
        "placeholders": [
            { "name": "name", "description": "The name." },
            { "name": "host", "description": "The host.", "default": "example.com" }
        ],
        "record": { "title": "{{name}}", "context": { "net": ["{{host}}", "{{unknown}} {{"], "n": 1 } },
        "code": { "language": "javascript", "source": "const a = \"{{name}}\"; // {{host}} {{x}} {{" }
    });
    Template::from_context(context.as_object().unwrap()).unwrap()
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn values_replace_placeholders_in_one_pass() {
    let new = template().instantiate(&values(&[("name", "a \"b\" {{host}}")])).unwrap();
    assert_eq!(new.source, "const a = \"a \\\"b\\\" {{host}}\"; // example.com {{x}} {{");
    assert_eq!(new.extension, "js");
    let record: serde_json::Value = serde_json::from_str(&new.json).unwrap();
    assert_eq!(
        record,
        json!({ "title": "a \"b\" {{host}}", "context": { "net": ["example.com", "{{unknown}} {{"], "n": 1 } })
    );
}

#[test]
fn all_wrong_values_are_reported() {
    let refused = template().instantiate(&values(&[("host", "a\nb"), ("nam", "x")])).unwrap_err();
    let fields: Vec<&str> = refused.0.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, ["nam", "name", "host"]);
}

#[test]
fn an_invalid_template_is_refused() {
    let refused =
        |context: serde_json::Value| Template::from_context(context.as_object().unwrap()).unwrap_err().to_string();
    assert_eq!(refused(json!({ "name": "t" })), "context.description: is required");
    let context = json!({ "name": "t", "description": "d", "placeholders": [{ "name": 5 }] });
    assert_eq!(refused(context), "context.placeholders[0].name: must be a string, not a number");
}
