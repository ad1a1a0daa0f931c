//! Checks a tool's code by its syntax tree.

use rcrt_breadcrumb::{Language, ToolCode};
use rcrt_typescript::Dialect;

use crate::{Finding, Report};

const FIELD: &str = "code.source";

pub(crate) fn check(code: &ToolCode, report: &mut Report) {
    if code.source.trim().is_empty() {
        let message = "is empty: it must export async function execute(input, context)";
        report.error(Finding::new("execute-exported", FIELD, message));
        return;
    }
    match rcrt_typescript::inspect(&code.source, dialect(code.language)) {
        Ok(found) => report.errors.extend(
            found
                .into_iter()
                .map(|found| Finding::new(found.rule.as_str(), FIELD, found.message).at(found.line, found.column)),
        ),
        Err(errors) => report.errors.extend(
            errors.into_iter().map(|error| Finding::new("syntax", FIELD, error.message).at(error.line, error.column)),
        ),
    }
}

fn dialect(language: Language) -> Dialect {
    match language {
        Language::Typescript => Dialect::TypeScript,
        Language::Javascript => Dialect::JavaScript,
    }
}
