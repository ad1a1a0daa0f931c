//! Checks a tool's schemas, and its examples against them.

use rcrt_breadcrumb::{ToolDefinition, Violations};
use rcrt_json_schema::{Schema, lint};
use serde_json::Value;

use crate::{Finding, Report};

/// The fields of the schemas and examples in the record.
struct Fields {
    input: &'static str,
    output: &'static str,
    examples: &'static str,
}

const CODE: Fields = Fields { input: "input_schema", output: "output_schema", examples: "examples" };
const LEGACY: Fields =
    Fields { input: "definition.inputSchema", output: "definition.outputSchema", examples: "definition.examples" };

pub(crate) fn check(definition: &ToolDefinition, report: &mut Report) {
    let fields = if definition.is_code() { CODE } else { LEGACY };
    let input = check_schema(&definition.input_schema, fields.input, report);
    let output = check_schema(&definition.output_schema, fields.output, report);
    check_presence(definition, &fields, report);
    for (index, example) in definition.examples.iter().enumerate() {
        if let Some(schema) = &input {
            let field = format!("{}[{index}].input", fields.examples);
            conforms(schema, &example.input, &field, fields.input, report);
        }
        if let (Some(schema), Some(value)) = (&output, &example.output) {
            let field = format!("{}[{index}].output", fields.examples);
            conforms(schema, value, &field, fields.output, report);
        }
    }
    if let (Some(schema), Some(bootstrap)) = (&input, &definition.bootstrap)
        && bootstrap.enabled
    {
        conforms(schema, &Value::Object(bootstrap.input.clone()), "bootstrap.input", fields.input, report);
    }
}

fn check_presence(definition: &ToolDefinition, fields: &Fields, report: &mut Report) {
    let input = &definition.input_schema;
    if definition.is_code() {
        if *input == Value::Bool(true) {
            let message = "is required: a JSON Schema with type object that says what the tool takes";
            report.error(Finding::new("input-schema", fields.input, message));
        } else if input.get("type") != Some(&Value::String("object".into())) {
            let message = "must have type object at the top: a tool's input is an object";
            report.error(Finding::new("input-schema", format!("{}.type", fields.input), message));
        }
    } else if *input != Value::Bool(true) && input.get("type") != Some(&Value::String("object".into())) {
        let message = "should have type object at the top: a tool's input is an object";
        report.warning(Finding::new("input-schema", format!("{}.type", fields.input), message));
    }
    if definition.output_schema == Value::Bool(true) {
        let message = "is missing: callers cannot know what the tool returns";
        report.warning(Finding::new("output-schema", fields.output, message));
    }
    if definition.examples.is_empty() {
        let message = "must have at least one example: {\"description\", \"input\", \"output\"}";
        let finding = Finding::new("example-required", fields.examples, message);
        if definition.is_code() { report.error(finding) } else { report.warning(finding) }
    }
}

/// The compiled schema, if examples can be checked against it.
fn check_schema(schema: &Value, field: &str, report: &mut Report) -> Option<Schema> {
    let compiled = match Schema::compile(schema) {
        Ok(compiled) => compiled,
        Err(violations) => {
            add(violations, "schema-invalid", field, report);
            return None;
        }
    };
    match lint(schema) {
        Ok(found) => {
            add(Violations(found.errors), "required-property", field, report);
            let warnings = found.warnings.into_iter();
            report.warnings.extend(
                warnings.map(|found| Finding::new("property-described", join(field, &found.field), found.message)),
            );
        }
        Err(violations) => add(violations, "schema-invalid", field, report),
    }
    Some(compiled)
}

fn add(violations: Violations, rule: &'static str, field: &str, report: &mut Report) {
    let found = violations.0.into_iter();
    report.errors.extend(found.map(|found| Finding::new(rule, join(field, &found.field), found.message)));
}

fn join(field: &str, inner: &str) -> String {
    match inner.chars().next() {
        None => field.to_owned(),
        Some('[') => format!("{field}{inner}"),
        Some(_) => format!("{field}.{inner}"),
    }
}

fn conforms(schema: &Schema, value: &Value, field: &str, against: &str, report: &mut Report) {
    for violation in schema.check_as(field, value) {
        let message = format!("does not fit {against}: {}", violation.message);
        report.error(Finding::new("example-conforms", violation.field, message));
    }
}
