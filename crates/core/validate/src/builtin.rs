//! Rules for the definitions of builtin tools.

use rcrt_breadcrumb::{Implementation, ToolDefinition};
use serde_json::Value;

use crate::{Finding, Report};

/// Whether it is a builtin tool.
pub(crate) fn is_builtin(definition: &ToolDefinition) -> bool {
    matches!(&definition.implementation, Implementation::Native(native) if native.kind == "builtin")
}

/// Profiles deny tools by name, so a builtin tool must have its original name.
pub(crate) fn check(definition: &ToolDefinition, report: &mut Report) {
    let Implementation::Native(native) = &definition.implementation else { return };
    if !is_builtin(definition) || native.settings.get("tool").and_then(Value::as_str) == Some(&definition.name) {
        return;
    }
    let message = format!("must be the tool's name, {:?}: a builtin tool cannot be renamed", definition.name);
    report.error(Finding::new("builtin-name", "implementation.tool", message));
}
