#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod any_input;
mod expected;
mod permissions;
mod profiles;
mod rules_page;
mod seeds;
mod template;
mod tool;

use rcrt_breadcrumb::{ToolDefinition, Violations};
use rcrt_validate::Finding;
use serde_json::{Value, json};

/// A valid tool, with `changes` merged into the top level of its context.
fn definition(changes: Value) -> ToolDefinition {
    read(changes).unwrap()
}

/// The same, for changes that can make the definition unreadable.
fn read(changes: Value) -> Result<ToolDefinition, Violations> {
    let mut context = json!({
        "name": "adder",
        "description": "Adds two numbers.",
        "version": "1.0.0",
        "code": {
            "language": "typescript",
            "source": "export async function execute(input: { a: number; b: number }) { return { sum: input.a + input.b }; }"
        },
        "input_schema": {
            "type": "object",
            "properties": {
                "a": { "type": "number", "description": "The first number." },
                "b": { "type": "number", "description": "The second number." }
            },
            "required": ["a", "b"]
        },
        "output_schema": {
            "type": "object",
            "properties": { "sum": { "type": "number", "description": "The sum." } },
            "required": ["sum"]
        },
        "examples": [{ "description": "Small numbers", "input": { "a": 1, "b": 2 }, "output": { "sum": 3 } }]
    });
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    context.as_object_mut().unwrap().extend(changes);
    ToolDefinition::read("tool.code.v1", context.as_object().unwrap(), None, None)
}

/// `(rule, field)` of each finding.
fn short(findings: &[Finding]) -> Vec<(&str, &str)> {
    findings.iter().map(|finding| (finding.rule, finding.field.as_str())).collect()
}
