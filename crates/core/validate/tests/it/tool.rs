//! All findings of a definition are reported at once, errors separate from warnings.

use rcrt_breadcrumb::{ToolDefinition, Violations};
use rcrt_validate::{Author, tool, tool_as};
use serde_json::{Value, json};

use crate::{definition, read, short};

#[test]
fn a_good_tool_has_no_findings() {
    let report = tool(&definition(json!({})));
    assert_eq!((report.errors, report.warnings), (vec![], vec![]));
}

#[test]
fn all_findings_are_reported_at_once() {
    let report = tool(&definition(json!({
        "description": " ",
        "code": { "language": "javascript", "source": "export function execute() {\n  return eval('1');\n}" },
        "permissions": { "net": ["localhost", "api.example.com"], "run": true, "env": ["HOME"] },
        "input_schema": {
            "type": "object",
            "properties": { "a": { "type": "number" } },
            "required": ["a", "b"]
        },
        "examples": [
            { "input": { "a": 1, "b": 2 }, "output": { "sum": "3" } },
            { "input": { "a": "x", "b": 2 } }
        ],
        "required_secrets": ["API_KEY", "my key", "API_KEY"]
    })));
    assert_eq!(
        short(&report.errors),
        [
            ("description", "description"),
            ("execute-async", "code.source"),
            ("no-eval", "code.source"),
            ("net-host", "permissions.net[0]"),
            ("forbidden-permission", "permissions.run"),
            ("required-property", "input_schema.required.b"),
            ("example-conforms", "examples[0].output.sum"),
            ("example-conforms", "examples[1].input.a"),
            ("secret-name", "required_secrets[1]"),
            ("secret-name", "required_secrets[2]"),
        ]
    );
    assert_eq!(
        short(&report.warnings),
        [("env-permission", "permissions.env"), ("property-described", "input_schema.properties.a")]
    );
    let eval = &report.errors[2];
    assert_eq!((eval.line, eval.column), (Some(2), Some(10)));
    assert_eq!(
        eval.to_string(),
        "code.source:2:10: eval runs text as code, which is not allowed: parse the text, or use JSON.parse for data \
         (no-eval)"
    );
    assert_eq!(report.errors[6].message, "does not fit output_schema: must be of type number, is string");
}

#[test]
fn all_missing_fields_are_reported_at_once() {
    let errors = |spec: Value| rcrt_validate::context("tool.code.v1", spec.as_object().unwrap()).0.errors;
    assert_eq!(
        short(&errors(json!({"name": "x"}))),
        [
            ("field", "code"),
            ("description", "description"),
            ("input-schema", "input_schema"),
            ("example-required", "examples")
        ]
    );
    // What cannot be read has no errors of its default.
    let partly = json!({"code": {"language": "cobol", "source": ""}, "examples": 5, "description": "d"});
    assert_eq!(
        short(&errors(partly)),
        [("field", "name"), ("field", "code.language"), ("field", "examples"), ("input-schema", "input_schema")]
    );
}

#[test]
fn ignored_fields_are_warnings() {
    let report = tool(&definition(json!({
        "category": "math", "ui_schema": {}, "colour": "red",
        "permissions": { "net": false, "breadcrumbs": { "read": ["note.v1"] } },
        "limits": { "timeout_ms": 86_400_000_u64, "memory": 64 }, "desc": "Adds.",
        "subscriptions": [{ "tag": "note", "comment": "notes" }]
    })));
    assert_eq!(report.errors, []);
    assert_eq!(
        short(&report.warnings),
        [
            ("unknown-field", "colour"),
            ("unknown-field", "limits.memory"),
            ("limits", "limits.timeout_ms"),
            ("unknown-field", "subscriptions[0].comment"),
            ("unknown-field", "permissions.breadcrumbs"),
            ("misspelled-field", "desc"),
        ]
    );
}

#[test]
fn a_syntax_error_is_reported_with_its_position() {
    let report =
        tool(&definition(json!({ "code": { "language": "typescript", "source": "export async function (" } })));
    assert!(short(&report.errors).iter().all(|found| *found == ("syntax", "code.source")), "{:?}", report.errors);
    assert_eq!(report.errors[0].line, Some(1));
    let report = tool(&definition(json!({ "code": { "language": "typescript", "source": "  " } })));
    assert_eq!(short(&report.errors), [("execute-exported", "code.source")]);
}

#[test]
fn schemas_and_examples_are_required() {
    let report = tool(&definition(json!({ "input_schema": true, "output_schema": true, "examples": [] })));
    assert_eq!(short(&report.errors), [("input-schema", "input_schema"), ("example-required", "examples")]);
    assert_eq!(short(&report.warnings), [("output-schema", "output_schema")]);
    let report = tool(&definition(json!({ "input_schema": { "type": "array" }, "examples": [{ "input": [] }] })));
    assert_eq!(short(&report.errors), [("input-schema", "input_schema.type")]);
}

#[test]
fn a_broken_schema_is_reported_with_its_field() {
    let report = tool(&definition(json!({
        "input_schema": { "type": "object", "properties": { "a": { "type": "nummber", "description": "?" } } },
        "output_schema": { "$ref": "https://example.com/schema.json" }
    })));
    assert_eq!(
        short(&report.errors),
        [("schema-invalid", "input_schema.properties.a.type"), ("schema-invalid", "output_schema.$ref")]
    );
}

#[test]
fn the_input_of_a_bootstrap_must_conform() {
    let report = tool(&definition(json!({ "bootstrap": { "enabled": true, "input": { "a": 1 } } })));
    assert_eq!(short(&report.errors), [("example-conforms", "bootstrap.input.b")]);
    assert!(report.errors[0].message.starts_with("does not fit input_schema: "), "{}", report.errors[0]);
    let report = tool(&definition(json!({ "bootstrap": { "enabled": false, "wait_for": ["adder"] } })));
    assert_eq!(short(&report.errors), [("bootstrap", "bootstrap.wait_for")]);
}

#[test]
fn a_deprecation_names_another_tool_and_a_day_that_is_not_before_it() {
    let errors = |deprecated: serde_json::Value| {
        let report = tool(&definition(json!({ "deprecated": deprecated })));
        report.errors.iter().map(|error| (error.rule, error.field.clone())).collect::<Vec<_>>()
    };
    for good in [
        json!({"since": "2026-01-31"}),
        json!({"since": "2026-01-31", "use": "adder-2"}),
        json!({"since": "2026-01-31", "use": "adder-2", "remove_after": "2026-01-31"}),
    ] {
        assert!(errors(good.clone()).is_empty(), "{good}");
    }
    for (bad, field) in [
        (json!({"since": "2026-01-31", "use": "adder"}), "deprecated.use"),
        (json!({"since": "2026-01-31", "use": "two words"}), "deprecated.use"),
        (json!({"since": "2026-01-31", "remove_after": "2026-03-31"}), "deprecated.use"),
        (json!({"since": "2026-01-31", "use": "b", "remove_after": "2026-01-30"}), "deprecated.remove_after"),
    ] {
        assert_eq!(errors(bad.clone()), [("deprecated", field.to_owned())], "{bad}");
    }
}

#[test]
fn errors_of_user_tools_are_warnings_for_system_tools() {
    let definition = definition(json!({ "permissions": {
        "read": true,
        "net": ["a.org", "b.org", "c.org", "d.org", "e.org", "f.org"]
    } }));
    assert_eq!(
        short(&tool_as(&definition, Author::User).errors),
        [("net-too-many", "permissions.net"), ("forbidden-permission", "permissions.read")]
    );
    let report = tool_as(&definition, Author::System);
    assert_eq!(short(&report.errors), []);
    assert_eq!(short(&report.warnings), [("forbidden-permission", "permissions.read")]);
}

#[test]
fn limits_beyond_the_maximum_are_refused() {
    let limits = |limits| match read(json!({ "limits": limits })) {
        Ok(definition) => {
            let report = tool(&definition);
            assert_eq!((short(&report.warnings), short(&report.errors)), (vec![], vec![]));
            Vec::new()
        }
        Err(Violations(found)) => found.into_iter().map(|violation| violation.field).collect(),
    };
    assert_eq!(limits(json!({ "cpu_percent": 50, "cpu_ms": 900_000 })), Vec::<String>::new());
    assert_eq!(limits(json!({ "cpu_percent": 0, "cpu_ms": 0 })), ["limits.cpu_percent", "limits.cpu_ms"]);
    assert_eq!(limits(json!({ "cpu_percent": 101, "cpu_ms": 900_001 })), ["limits.cpu_percent", "limits.cpu_ms"]);
}

#[test]
fn code_that_no_engine_loads_is_reported_with_its_position() {
    let execute = "export async function execute() { return {}; }\n";
    for line in [execute, "export { nope };", "const re = /(/;", "const re = /[b-a]/u;"] {
        let code = json!({ "language": "typescript", "source": format!("{execute}{line}") });
        let report = tool(&definition(json!({ "code": code })));
        assert_eq!(short(&report.errors), [("syntax", "code.source")], "{line}: {:?}", report.errors);
        assert!(report.errors[0].line.is_some() && report.errors[0].column.is_some(), "{line}");
    }
}

#[test]
fn findings_of_a_legacy_tool_name_its_own_fields() {
    let context = json!({
        "name": "old",
        "definition": { "inputSchema": { "type": "object", "required": ["x"] } },
        "implementation": { "type": "http" }
    });
    let old = rcrt_breadcrumb::ToolDefinition::read("tool.v1", context.as_object().unwrap(), None, None).unwrap();
    let report = tool(&old);
    assert_eq!(short(&report.errors), [("required-property", "definition.inputSchema.required.x")]);
    assert_eq!(
        short(&report.warnings),
        [
            ("description", "description"),
            ("output-schema", "definition.outputSchema"),
            ("example-required", "definition.examples")
        ]
    );
}

#[test]
fn invalid_secret_names_and_too_many_secrets_are_refused() {
    let of = |names: Vec<String>| tool(&definition(json!({"required_secrets": names})));
    for bad in ["API-KEY", "api.key", "9TH", "", &"x".repeat(201)] {
        assert_eq!(short(&of(vec![bad.to_owned()]).errors), [("secret-name", "required_secrets[0]")], "{bad:?}");
    }
    let named = |count: usize| (0..count).map(|n| format!("S{n}")).collect();
    assert!(of(named(50)).errors.is_empty());
    assert_eq!(short(&of(named(51)).errors), [("secret-name", "required_secrets")]);
}

#[test]
fn a_builtin_tool_keeps_its_name_and_can_reach_every_host() {
    let builtin = |implementation: Value| {
        let context = json!({
            "name": "web_fetch",
            "description": "Fetches.",
            "definition": {
                "inputSchema": { "type": "object", "properties": {} },
                "outputSchema": { "type": "string" },
                "examples": [{ "description": "One", "input": {} }]
            },
            "implementation": implementation,
            "permissions": { "net": true }
        });
        tool(&ToolDefinition::read("tool.v1", context.as_object().unwrap(), None, None).unwrap())
    };
    let report = builtin(json!({ "type": "builtin", "tool": "web_fetch" }));
    assert_eq!((report.errors, report.warnings), (vec![], vec![]));
    for named in [json!({ "type": "builtin", "tool": "bash" }), json!({ "type": "builtin" })] {
        assert_eq!(short(&builtin(named).errors), [("builtin-name", "implementation.tool")]);
    }
    let elsewhere = |place: &str| builtin(json!({ "type": "builtin", "tool": "web_fetch", "isolation": place }));
    assert_eq!(elsewhere("pod").errors, vec![]);
    assert_eq!(short(&elsewhere("moon").errors), [("builtin-isolation", "implementation.isolation")]);
    // An http tool with every host still gets a warning.
    let report = builtin(json!({ "type": "http", "url": "https://example.com/" }));
    assert_eq!(short(&report.warnings), [("net-open", "permissions.net")]);
}
