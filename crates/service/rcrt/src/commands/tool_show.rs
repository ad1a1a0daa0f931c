//! Prints a tool's definition for people.

use rcrt_breadcrumb::{Annotations, Breadcrumb, CatalogEntry, Implementation, ToolDefinition};
use serde_json::Value;

use super::required_secrets::{KnownSecrets, RequiredSecret};
use super::tool_report::Report;
use crate::output::{Output, Style};

pub fn print(
    output: Output,
    record: &Breadcrumb,
    tool: Result<ToolDefinition, String>,
    report: Option<&Report>,
    warnings: &[String],
    same_name: &[String],
    secrets: &KnownSecrets,
) -> anyhow::Result<()> {
    if let Some(report) = report {
        let instead = report.running_version.map(|version| format!(" (its version {version} runs)"));
        let text = format!("This version is not run{}: {}", instead.unwrap_or_default(), report.sentence());
        output.line(&output.paint(Style::Bad, &text))?;
    }
    for warning in warnings {
        output.line(&output.paint(Style::Warning, warning))?;
    }
    let tool = match tool {
        Ok(tool) => tool,
        Err(problem) => {
            output.line(&output.paint(Style::Bad, &format!("This definition is broken: {problem}")))?;
            return output.json(&record.context);
        }
    };
    let row = |name: &str, value: &str| row(output, name, value);
    row("Name", &tool.name)?;
    if !tool.version.is_empty() {
        row("Version", &tool.version)?;
    }
    row("Record", &format!("{} (version {})", record.id, record.version))?;
    for other in same_name {
        row("Same name", other)?;
    }
    row("Source", &tool.implementation.source().to_string())?;
    row("Tags", &record.tags.join(", "))?;
    row("Effects", &annotated(&tool.annotations))?;
    row("Permissions", &compact(&serde_json::to_value(&tool.permissions)?))?;
    row("Limits", &compact(&serde_json::to_value(tool.limits)?))?;
    if !tool.required_secrets.is_empty() {
        let running = report.and_then(|report| report.running_version).unwrap_or(record.version);
        let needs = secrets.needs(Some((record.id, running)), &tool.required_secrets);
        let text = needs.map(|needs| needs.iter().map(RequiredSecret::describe).collect::<Vec<_>>().join(", "));
        row("Secrets", &text.unwrap_or_else(|| tool.required_secrets.join(", ")))?;
    }
    if !tool.description.is_empty() {
        output.line(&format!("\n{}", tool.description))?;
    }
    let part = |title: &str, text: &str| part(output, title, text);
    part("Input", &serde_json::to_string_pretty(&tool.input_schema)?)?;
    part("Output", &serde_json::to_string_pretty(&tool.output_schema)?)?;
    for example in &tool.examples {
        let title = if example.description.is_empty() { "Example" } else { &example.description };
        let result = example.output.as_ref().map(|value| format!("\n  => {value}")).unwrap_or_default();
        part(title, &format!("  {}{result}", example.input))?;
    }
    match &tool.implementation {
        Implementation::Code(code) => part("Source", code.source.trim_end()),
        Implementation::Native(native) => part("Implementation", &serde_json::to_string_pretty(&native.settings)?),
    }
}

/// A tool as the catalog has it, for an agent that cannot read its record: a caller.
pub fn print_entry(output: Output, entry: &CatalogEntry) -> anyhow::Result<()> {
    let row = |name: &str, value: &str| row(output, name, value);
    match entry {
        CatalogEntry::Waiting(tool) => {
            for missing in &tool.missing_requirements {
                output.line(&output.paint(Style::Warning, &format!("It cannot be called yet: {missing}")))?;
            }
            row("Name", &tool.name)?;
            row("Source", &tool.source.to_string())?;
            row("Tags", &tool.tags.join(", "))
        }
        CatalogEntry::Offered(tool) => {
            row("Name", &tool.name)?;
            row("Record", &format!("{} (version {})", tool.tool_id, tool.tool_version))?;
            row("Source", &tool.source.to_string())?;
            row("Tags", &tool.tags.join(", "))?;
            row("Effects", &annotated(&tool.annotations))?;
            if !tool.description.is_empty() {
                output.line(&format!("\n{}", tool.description))?;
            }
            part(output, "Input", &serde_json::to_string_pretty(&tool.parameters)?)
        }
    }
}

fn row(output: Output, name: &str, value: &str) -> anyhow::Result<()> {
    output.line(&format!("{}{value}", output.paint(Style::Bold, &format!("{name:<13}"))))
}

fn part(output: Output, title: &str, text: &str) -> anyhow::Result<()> {
    output.line(&format!("\n{}\n{text}", output.paint(Style::Bold, title)))
}

/// Describes the annotations.
fn annotated(annotations: &Annotations) -> String {
    let undeclared = Annotations { title: annotations.title.clone(), ..Annotations::default() };
    if *annotations == undeclared {
        // The catalog does not tell both apart.
        return "may delete things and use external systems (as declared, or because annotations say nothing)".into();
    }
    let Annotations { read_only, destructive, idempotent, open_world, .. } = annotations;
    let changes = match (read_only, destructive) {
        (true, _) => "changes nothing",
        (false, true) => "can change or delete things permanently",
        (false, false) => "adds things, deletes nothing",
    };
    let again = if *idempotent && !read_only { "; the same call again changes nothing more" } else { "" };
    let world = if *open_world { "; uses external systems" } else { "" };
    format!("{changes}{again}{world}")
}

/// The entries that are not false, null or an empty list.
fn compact(value: &Value) -> String {
    let Some(entries) = value.as_object() else { return value.to_string() };
    let is_default =
        |value: &Value| matches!(value, Value::Bool(false) | Value::Null) || value == &Value::Array(vec![]);
    let parts: Vec<String> = entries
        .iter()
        .filter(|(_, value)| !is_default(value))
        .map(|(key, value)| format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    if parts.is_empty() { "none".into() } else { parts.join("  ") }
}
