//! A tool's definition from an untrusted record: what is accepted keeps the limits that later code
//! relies on. If the validators accept it, it can be offered: its hosts parse, its schemas compile,
//! its source becomes JavaScript.
//!
//! Input: the record's context as JSON. A second document after it is checked as an input of the
//! tool.
#![no_main]

// Included by path, because its crate needs an HTTP stack.
#[path = "../../crates/runtime/egress/src/rules.rs"]
#[allow(dead_code)]
mod rules;

use libfuzzer_sys::{Corpus, fuzz_target};
use rcrt_breadcrumb::{
    AccessList, Bootstrap, Implementation, Language, ToolCode, ToolDefinition, Violations, schema_names,
};
use rcrt_typescript::Dialect;
use rcrt_validate::{Author, Schema};
use rules::NetRules;
use serde_json::{Deserializer, Map, Value};

fuzz_target!(|input: &[u8]| -> Corpus {
    let mut documents = Deserializer::from_slice(input).into_iter::<Value>();
    let Some(Ok(Value::Object(context))) = documents.next() else { return Corpus::Reject };
    let value = documents.next().and_then(Result::ok).unwrap_or_default();
    for schema_name in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        match ToolDefinition::read(schema_name, &context, Some("from the record"), None) {
            Ok(definition) => {
                assert_eq!(definition.is_code(), schema_name == schema_names::TOOL_CODE);
                check_read(&definition, &context);
                check_offered(&definition, &value);
            }
            Err(Violations(found)) => {
                assert!(!found.is_empty() && found.iter().all(|violation| !violation.message.is_empty()));
            }
        }
    }
    assert!(ToolDefinition::read("note.v1", &context, None, None).is_err());
    Corpus::Keep
});

fn is_word(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len())
        && !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'))
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Checks that hold for every parsed definition, validated or not.
fn check_read(definition: &ToolDefinition, context: &Map<String, Value>) {
    assert!(is_word(&definition.name, 100), "{:?}", definition.name);
    assert_eq!(context.get("name"), Some(&Value::from(definition.name.as_str())));
    definition.limits.check().expect("limits are checked as they are read");
    assert!(definition.subscriptions.iter().all(|selector| !selector.is_empty() && selector.check().is_ok()));
    let again = serde_json::to_value(definition.limits).expect("limits are JSON");
    assert_eq!(serde_json::from_value::<rcrt_breadcrumb::Limits>(again).ok(), Some(definition.limits));
    let again = serde_json::to_value(&definition.permissions).expect("permissions are JSON");
    assert_eq!(
        serde_json::from_value::<rcrt_breadcrumb::Permissions>(again).ok().as_ref(),
        Some(&definition.permissions)
    );
    if let Some(bootstrap) = &definition.bootstrap {
        let again = serde_json::to_value(bootstrap).expect("a bootstrap is JSON");
        assert_eq!(serde_json::from_value::<Bootstrap>(again).ok().as_ref(), Some(bootstrap));
    }
    if !context.contains_key("permissions") {
        assert_eq!(
            definition.permissions,
            rcrt_breadcrumb::Permissions::default(),
            "without permissions, nothing is allowed"
        );
    }
}

/// Checks that hold for every offered definition.
fn check_offered(definition: &ToolDefinition, value: &Value) {
    let report = rcrt_validate::tool(definition);
    assert_eq!(rcrt_validate::tool(definition), report, "a validation has the same result every time");
    let system = rcrt_validate::tool_as(definition, Author::System);
    assert!(
        system.errors.iter().all(|finding| report.errors.contains(finding)),
        "an untrusted author has no more rights than the system"
    );
    if !report.is_ok() {
        return;
    }
    let permissions = &definition.permissions;
    NetRules::read(&permissions.net).expect("the gate accepts what the validator accepts");
    for grant in [&permissions.read, &permissions.write, &permissions.run, &permissions.ffi] {
        assert!(!grant.is_granted(), "an untrusted tool gets {grant:?}");
    }
    if let AccessList::Listed(hosts) = &permissions.net {
        assert!(hosts.len() <= 5);
    }
    assert!(definition.required_secrets.iter().all(|name| is_word(name, 128)));
    for schema in [&definition.input_schema, &definition.output_schema] {
        let compiled = Schema::compile(schema).expect("the runner compiles what the validator accepts");
        let verdict = compiled.check(value);
        assert_eq!(compiled.check(value), verdict);
    }
    if let Implementation::Code(ToolCode { language, source, .. }) = &definition.implementation {
        let dialect = match language {
            Language::Typescript => Dialect::TypeScript,
            Language::Javascript => Dialect::JavaScript,
        };
        let compiled = rcrt_typescript::compile(source, "tool.ts", dialect)
            .expect("the runner compiles what the validator accepts");
        let forbidden = rcrt_typescript::inspect(&compiled.javascript, Dialect::JavaScript);
        assert!(forbidden.is_ok(), "what was compiled is JavaScript: {forbidden:?}");
    }
}
