//! What a tool of the program itself has to say.

use breadcrumb::{Implementation, ToolDefinition};
use serde_json::Value;

use crate::{Finding, Report};

/// Whether a part of the program runs the tool.
pub(crate) fn is_builtin(definition: &ToolDefinition) -> bool {
    matches!(&definition.implementation, Implementation::Native(native) if native.kind == "builtin")
}

/// Profiles close tools by their names, so a builtin tool has the one that it was made with.
pub(crate) fn check(definition: &ToolDefinition, report: &mut Report) {
    let Implementation::Native(native) = &definition.implementation else { return };
    if !is_builtin(definition) || native.settings.get("tool").and_then(Value::as_str) == Some(&definition.name) {
        return;
    }
    let message = format!("must be the tool's name, {:?}: a builtin tool keeps the name that it has", definition.name);
    report.error(Finding::new("builtin-name", "implementation.tool", message));
}
