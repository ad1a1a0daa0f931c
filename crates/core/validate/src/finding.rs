//! The findings of validators.

use std::fmt;

use serde::Serialize;

/// Who wrote a definition. System tools, which `rcrt bootstrap` writes, can ask for more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Author {
    System,
    #[default]
    User,
}

/// One error or warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The field of the definition, dotted: `permissions.net[2]`, `examples[0].input.a`,
    /// `code.source`.
    pub field: String,
    /// What is wrong, and what would be right.
    pub message: String,
    /// The rule's stable name, such as `no-eval`.
    pub rule: &'static str,
    /// For code: the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// For code: the column, from 1, in UTF-16 units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl Finding {
    pub(crate) fn new(rule: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), rule, line: None, column: None }
    }

    pub(crate) fn at(mut self, line: u32, column: u32) -> Self {
        self.line = Some(line);
        self.column = Some(column);
        self
    }
}

/// `code.source:3:7: … (no-eval)`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {} ({})", self.message, self.rule)
    }
}

/// Everything found in one definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// If there are any, the tool is not offered.
    pub errors: Vec<Finding>,
    /// Possible improvements, and settings without effect. The tool is offered anyway. For example,
    /// a property without a description is a warning. `bootstrap-breadcrumbs/README.md` lists every
    /// rule.
    pub warnings: Vec<Finding>,
}

impl Report {
    /// Whether there are no errors. There may be warnings.
    pub fn is_ok(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn error(&mut self, finding: Finding) {
        self.errors.push(finding);
    }

    pub(crate) fn warning(&mut self, finding: Finding) {
        self.warnings.push(finding);
    }
}
