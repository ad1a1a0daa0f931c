//! Runs all validators on one definition.

use std::collections::HashSet;

use rcrt_breadcrumb::{Implementation, Limits, ToolDefinition, is_secret_name, is_tool_name};
use serde_json::{Map, Value};

use crate::{Author, Finding, Report, builtin, code, examples, permissions, template};

/// The maximum number of secrets of one tool. Each is read for each call.
const MAX_SECRETS: usize = 50;

/// The rule of a field that is probably meant to be another one.
pub const MISSPELLED: &str = "misspelled-field";

/// Validates a user's tool: all errors and warnings.
pub fn tool(definition: &ToolDefinition) -> Report {
    tool_as(definition, Author::User)
}

/// As [`tool`], with the rules for this author: some errors of users' tools are only warnings for
/// system tools.
pub fn tool_as(definition: &ToolDefinition, author: Author) -> Report {
    let mut report = Report::default();
    warn_of_ignored(definition, &mut report);
    check_description(definition, &mut report);
    if let Implementation::Code(tool_code) = &definition.implementation {
        code::check(tool_code, &definition.permissions.tools, &mut report);
    }
    builtin::check(definition, &mut report);
    permissions::check(definition, author, &mut report);
    examples::check(definition, &mut report);
    check_limits(&definition.limits, &mut report);
    check_secrets(&definition.required_secrets, &mut report);
    check_bootstrap(definition, &mut report);
    check_deprecation(definition, &mut report);
    report
}

/// Reads and validates the context of a tool's record with this schema name. A field that cannot be
/// read is an error with the rule `field`, and the definition is `None` in that case. The other
/// fields are validated nevertheless, so that all errors are known at once.
pub fn context(schema_name: &str, context: &Map<String, Value>) -> (Report, Option<ToolDefinition>) {
    context_with(schema_name, context, tool)
}

/// As [`context`], with other rules than those of [`tool`].
pub fn context_with(
    schema_name: &str,
    context: &Map<String, Value>,
    rules: impl Fn(&ToolDefinition) -> Report,
) -> (Report, Option<ToolDefinition>) {
    let (definition, violations) = match ToolDefinition::read_partly(schema_name, context, None, None) {
        Ok((definition, found)) if found.is_empty() => return (rules(&definition), Some(definition)),
        Ok((definition, found)) => (Some(definition), found),
        Err(violations) => (None, violations),
    };
    let others = definition.map(|definition| rules(&definition).errors).unwrap_or_default();
    // What was not read has its default, which has errors of its own.
    let unread: Vec<String> = violations.0.iter().map(|found| first_part(&found.field).to_owned()).collect();
    let others = others.into_iter().filter(|error| !unread.iter().any(|field| field == first_part(&error.field)));
    let found = violations.0.iter().map(|found| Finding::new("field", &found.field, &found.message));
    (Report { errors: found.chain(others).collect(), warnings: Vec::new() }, None)
}

fn first_part(field: &str) -> &str {
    field.split(['.', '[']).next().unwrap_or(field)
}

fn warn_of_ignored(definition: &ToolDefinition, report: &mut Report) {
    for ignored in &definition.ignored.0 {
        let rule = if ignored.field.starts_with("limits.timeout_ms") { "limits" } else { "unknown-field" };
        report.warning(Finding::new(rule, &ignored.field, &ignored.message));
    }
    for misspelled in &definition.misspelled.0 {
        report.warning(Finding::new(MISSPELLED, &misspelled.field, &misspelled.message));
    }
}

fn check_description(definition: &ToolDefinition, report: &mut Report) {
    if definition.description.trim().is_empty() {
        let message = "must say what the tool does: agents choose tools by it";
        let finding = Finding::new("description", "description", message);
        if definition.is_code() { report.error(finding) } else { report.warning(finding) }
    }
    if definition.description.trim() == template::DESCRIPTION {
        let message = "is that of the template; say what the tool does: agents choose tools by it";
        report.warning(Finding::new("template-text", "description", message));
    }
}

fn check_limits(limits: &Limits, report: &mut Report) {
    if let Err(violations) = limits.check() {
        let found = violations.0.into_iter();
        report.errors.extend(found.map(|found| Finding::new("limits", found.field, found.message)));
    }
}

fn check_secrets(names: &[String], report: &mut Report) {
    let mut seen = HashSet::new();
    for (index, name) in names.iter().enumerate() {
        let field = format!("required_secrets[{index}]");
        let shown: String = name.chars().take(80).collect();
        if index == MAX_SECRETS {
            let message = format!("{} names are too many: at most {MAX_SECRETS}", names.len());
            report.error(Finding::new("secret-name", "required_secrets", message));
            return;
        }
        if !is_secret_name(name) {
            let message = format!("{shown:?} must be a letter or _, then letters, digits and _, at most 200 in all");
            report.error(Finding::new("secret-name", field, message));
        } else if !seen.insert(name) {
            report.error(Finding::new("secret-name", field, format!("{shown:?} is named twice: name it once")));
        }
    }
}

fn check_bootstrap(definition: &ToolDefinition, report: &mut Report) {
    let Some(bootstrap) = &definition.bootstrap else { return };
    if bootstrap.wait_for.contains(&definition.name) {
        let message = "names the tool itself, which would then wait forever";
        report.error(Finding::new("bootstrap", "bootstrap.wait_for", message));
    }
}

fn check_deprecation(definition: &ToolDefinition, report: &mut Report) {
    let Some(deprecation) = &definition.deprecated else { return };
    let mut error = |field: &str, message: &str| report.error(Finding::new("deprecated", field, message));
    match (&deprecation.replacement, deprecation.remove_after) {
        (Some(name), _) if *name == definition.name => {
            error("deprecated.use", "names the tool itself; name the tool that replaces it");
        }
        (Some(name), _) if !is_tool_name(name) => {
            error("deprecated.use", "must be the name of a tool, such as weather-2");
        }
        (None, Some(_)) => {
            error("deprecated.use", "is required with remove_after: later calls are answered with this tool's name");
        }
        _ => {}
    }
    if deprecation.remove_after.is_some_and(|last| last < deprecation.since) {
        error("deprecated.remove_after", "must not be before since");
    }
}
