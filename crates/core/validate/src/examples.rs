//! Checks a tool's schemas, and its examples against them.

use rcrt_breadcrumb::{ErrorCode, Example, ToolDefinition, Violation, Violations};
use rcrt_json_schema::{Schema, lint};
use serde_json::Value;
use url::Url;

use crate::expected::{check_expected, has_matchers};
use crate::{Finding, Report};

/// The most examples of one tool. Each runs when the tool is published.
const MAX_EXAMPLES: usize = 50;
/// The most bytes of one example as JSON.
const MAX_EXAMPLE_BYTES: usize = 256 * 1024;

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
    for (index, example) in definition.examples.iter().enumerate().take(MAX_EXAMPLES) {
        let place = format!("{}[{index}]", fields.examples);
        check_form(example, &place, report);
        if let Some(schema) = &input
            && example.error.as_ref().is_none_or(|error| error.code != ErrorCode::InvalidArguments)
        {
            conforms(schema, &example.input, &format!("{place}.input"), fields.input, report);
        }
        if let (Some(schema), Some(value)) = (&output, &example.output)
            && !has_matchers(value)
        {
            conforms(schema, value, &format!("{place}.output"), fields.output, report);
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
    let count = definition.examples.len();
    if count > MAX_EXAMPLES {
        let message = format!("has {count} examples; at most {MAX_EXAMPLES} are allowed");
        report.error(Finding::new("example-form", fields.examples, message));
    }
}

/// Checks what an example expects and what it gives the tool.
fn check_form(example: &Example, place: &str, report: &mut Report) {
    let mut found = Violations::default();
    let bytes = serde_json::to_string(example).map_or(0, |text| text.len());
    if bytes > MAX_EXAMPLE_BYTES {
        found.add(place, format!("has {bytes} bytes of JSON; at most {MAX_EXAMPLE_BYTES} are allowed"));
    }
    if example.output.is_some() && example.error.is_some() {
        found.add(place, "has an output and an error; a call has only one of them");
    }
    let mut matchers: Vec<Violation> = Vec::new();
    if let Some(output) = &example.output {
        matchers.extend(check_expected(&format!("{place}.output"), output));
    }
    if let Some(message) = example.error.as_ref().and_then(|error| error.message.as_ref()) {
        matchers.extend(check_expected(&format!("{place}.error.message"), message));
    }
    for (at, write) in example.writes.iter().flatten().enumerate() {
        matchers.extend(check_expected(&format!("{place}.writes[{at}]"), write));
    }
    for (at, exchange) in example.http.iter().flatten().enumerate() {
        let request = format!("{place}.http[{at}].request");
        if !Url::parse(&exchange.request.url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            found.add(format!("{request}.url"), "must be an absolute URL with http or https");
        }
        if let Some(body) = &exchange.request.body {
            matchers.extend(check_expected(&format!("{request}.body"), body));
        }
        for (name, value) in &exchange.request.headers {
            matchers.extend(check_expected(&format!("{request}.headers.{name}"), value));
        }
        if !(200..=599).contains(&exchange.response.status) {
            found.add(format!("{place}.http[{at}].response.status"), "must be a status from 200 to 599");
        }
        for (name, value) in &exchange.response.headers {
            if !is_header_name(name) {
                found.add(
                    format!("{place}.http[{at}].response.headers"),
                    format!("{name:?} is not the name of a header"),
                );
            } else if value.chars().any(|c| c.is_control() && c != '\t') {
                let message = "has a control character, such as a line break, which no header can have";
                found.add(format!("{place}.http[{at}].response.headers.{name}"), message);
            }
        }
    }
    for (at, call) in example.calls.iter().flatten().enumerate() {
        let place = format!("{place}.calls[{at}]");
        if call.tool.trim().is_empty() {
            found.add(format!("{place}.tool"), "must be the name of the tool that is called");
        }
        if call.error.is_some() && !call.output.is_null() {
            found.add(&place, "has an output and an error; a call has only one of them");
        }
        if let Some(input) = &call.input {
            matchers.extend(check_expected(&format!("{place}.input"), input));
        }
    }
    for (at, record) in example.breadcrumbs.iter().enumerate() {
        if record.version < 1 {
            found.add(format!("{place}.breadcrumbs[{at}].version"), "must be 1 or more");
        }
    }
    let form = found.0.into_iter().map(|one| Finding::new("example-form", one.field, one.message));
    report.errors.extend(form);
    report.errors.extend(matchers.into_iter().map(|one| Finding::new("example-matcher", one.field, one.message)));
}

/// Whether this is a token of HTTP.
fn is_header_name(name: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_token)
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
