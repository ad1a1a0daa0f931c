//! A tool made from a template: the value of a placeholder stays the same text. It is filled in
//! once, and leaves neither the string nor the comment that it is in.
//!
//! Input: three texts on a line each: a value, another, and a piece of the template's source.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use rcrt_typescript::Dialect;
use rcrt_validate::template::Template;
use serde_json::{Map, Value, json};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut parts = text.splitn(3, '\n');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let piece = parts.next().unwrap_or_default();

    let source = "// {{first}}\nexport async function execute() { return [\"{{first}}\", \"{{second}}\"]; }\n";
    let filled = instance(source, first, second);
    let Some((json, source)) = filled else {
        assert!([first, second].iter().any(|value| value.contains(['\r', '\u{2028}', '\u{2029}', '\0'])));
        return;
    };
    let record: Map<String, Value> = serde_json::from_str(&json).expect("a record is JSON");
    assert_eq!(record["title"], format!("{first} and {second}"));
    assert_eq!(record.len(), 1);
    let (comment, code) = source.split_once('\n').expect("the comment ends where it ended");
    assert!(comment.starts_with("// ") && !code.contains("//") || first.contains("//") || second.contains("//"));
    let list = code.trim_start_matches("export async function execute() { return ").trim_end().trim_end_matches("; }");
    assert_eq!(serde_json::from_str::<Value>(list).expect("two strings"), json!([first, second]));
    rcrt_typescript::compile(&source, "tool.ts", Dialect::TypeScript).expect("is TypeScript as before");

    // Whatever the template's author wrote, text that is not a placeholder stays.
    let (_, source) = instance(piece, "", "").expect("empty values are good");
    assert!(source.len() <= piece.len());
    if !piece.contains("{{first}}") && !piece.contains("{{second}}") {
        assert_eq!(source, piece);
    }
});

fn instance(source: &str, first: &str, second: &str) -> Option<(String, String)> {
    let context = json!({
        "name": "t", "description": "d",
        "placeholders": [{"name": "first", "description": "a"}, {"name": "second", "description": "b"}],
        "record": {"title": "{{first}} and {{second}}"},
        "code": {"language": "typescript", "source": source},
    });
    let context = context.as_object().expect("an object");
    let template = Template::from_context(context).expect("is a template");
    let given = BTreeMap::from([("first".to_owned(), first.to_owned()), ("second".to_owned(), second.to_owned())]);
    template.instantiate(&given).ok().map(|tool| (tool.json, tool.source))
}
