//! Checks a tool's code by its syntax tree.

use rcrt_breadcrumb::{AccessList, Language, ToolCode};
use rcrt_typescript::{Dialect, ToolCall};

use crate::{Finding, Report};

const FIELD: &str = "code.source";

/// `callable`: the tool's `permissions.tools`.
pub(crate) fn check(code: &ToolCode, callable: &AccessList, report: &mut Report) {
    if code.source.trim().is_empty() {
        let message = "is empty: it must export async function execute(input, context)";
        report.error(Finding::new("execute-exported", FIELD, message));
        return;
    }
    match rcrt_typescript::inspect(&code.source, dialect(code.language)) {
        Ok(found) => {
            report.errors.extend(
                found
                    .findings
                    .into_iter()
                    .map(|found| Finding::new(found.rule.as_str(), FIELD, found.message).at(found.line, found.column)),
            );
            check_calls(&found.tool_calls, callable, report);
        }
        Err(errors) => report.errors.extend(
            errors.into_iter().map(|error| Finding::new("syntax", FIELD, error.message).at(error.line, error.column)),
        ),
    }
}

/// Calls of tools that `permissions.tools` does not name fail with `PermissionDenied`.
fn check_calls(calls: &[ToolCall], callable: &AccessList, report: &mut Report) {
    for call in calls.iter().filter(|call| !call.name.is_empty() && !callable.grants(&call.name)) {
        let shown: String = call.name.chars().take(80).collect();
        let message = format!("calls the tool {shown:?}, which permissions.tools does not name: add {shown:?} there");
        report.error(Finding::new("tools-permission", FIELD, message).at(call.line, call.column));
    }
}

fn dialect(language: Language) -> Dialect {
    match language {
        Language::Typescript => Dialect::TypeScript,
        Language::Javascript => Dialect::JavaScript,
    }
}
