//! Rules for the definitions of builtin tools.

use rcrt_breadcrumb::{Implementation, ToolDefinition};
use serde_json::Value;

use crate::{Finding, Report};

/// Where the programs of a tool can run.
const ISOLATIONS: [&str; 2] = ["jail", "pod"];

/// Whether it is a builtin tool.
pub(crate) fn is_builtin(definition: &ToolDefinition) -> bool {
    matches!(&definition.implementation, Implementation::Native(native) if native.kind == "builtin")
}

/// Profiles deny tools by name, so a builtin tool must have its original name. The isolation is
/// checked here, so that a misspelled one is not just waited for.
pub(crate) fn check(definition: &ToolDefinition, report: &mut Report) {
    let Implementation::Native(native) = &definition.implementation else { return };
    if !is_builtin(definition) {
        return;
    }
    if native.settings.get("tool").and_then(Value::as_str) != Some(&definition.name) {
        let message = format!("must be the tool's name, {:?}: a builtin tool cannot be renamed", definition.name);
        report.error(Finding::new("builtin-name", "implementation.tool", message));
    }
    if let Some(isolation) = native.settings.get("isolation")
        && !isolation.as_str().is_some_and(|name| ISOLATIONS.contains(&name))
    {
        let message = format!("is {isolation}; must be one of: {}", ISOLATIONS.join(", "));
        report.error(Finding::new("builtin-isolation", "implementation.isolation", message));
    }
}
