//! Findings about a tool's code, from its syntax tree.

use oxc::span::Span;

use crate::position::Lines;
use crate::syntax::with_tree;
use crate::{Dialect, SyntaxError, ToolCall, compile, entry, forbidden, tool_calls, unsupported};

/// A rule for tool code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// No `eval`, under any name.
    NoEval,
    /// No constructors of functions: they make code from strings.
    NoFunctionConstructor,
    NoStringTimer,
    /// No `import(…)`.
    NoDynamicImport,
    /// No `import … from`, no `export … from`, types included.
    NoImport,
    NoRequire,
    NoImportMeta,
    /// A value named `execute` is exported.
    ExecuteExported,
    /// `execute` is an async function.
    ExecuteAsync,
}

impl Rule {
    /// The rule's stable name, as reports print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoEval => "no-eval",
            Self::NoFunctionConstructor => "no-function-constructor",
            Self::NoStringTimer => "no-string-timer",
            Self::NoDynamicImport => "no-dynamic-import",
            Self::NoImport => "no-import",
            Self::NoRequire => "no-require",
            Self::NoImportMeta => "no-import-meta",
            Self::ExecuteExported => "execute-exported",
            Self::ExecuteAsync => "execute-async",
        }
    }
}

/// A violation of a rule. Line and column start at 1; the column counts UTF-16 units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    pub line: u32,
    pub column: u32,
    /// What is wrong and what to do instead.
    pub message: String,
}

/// Limit on the findings for one source: finding the column of each takes time, and more do not
/// help an author.
const MAX_FINDINGS: usize = 200;

/// What the syntax tree of a source shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The violations of each [`Rule`] (at most 200 in all), in the order of the source.
    pub findings: Vec<Finding>,
    /// The calls of other tools (at most 200) whose name is in the source: as a literal, a template
    /// without substitutions, a sum of these, or a constant of such a value. `context` can have
    /// another name. Calls by another way, such as `const { callTool } = context.api`, are not
    /// found.
    pub tool_calls: Vec<ToolCall>,
}

/// What the tree shows, or the errors if there is none.
///
/// The rules check only what is in the tree: they do not find a name that is computed at run time.
/// They are for authors; the sandbox enforces security.
pub fn inspect(source: &str, dialect: Dialect) -> Result<Inspection, Vec<SyntaxError>> {
    with_tree(source, dialect, |tree| {
        let unsupported = unsupported::find(&tree);
        if !unsupported.is_empty() {
            return Err(unsupported);
        }
        let mut findings = Findings { lines: tree.lines, found: Vec::new() };
        entry::check(&tree.program, &mut findings);
        forbidden::find(&tree, &mut findings);
        let mut findings = findings.found;
        findings.sort_by_key(|finding| (finding.line, finding.column, finding.rule));
        findings.dedup_by_key(|finding| (finding.line, finding.column, finding.rule));
        let tool_calls = tool_calls::find(&tree);
        if dialect == Dialect::TypeScript {
            compile::emit(tree, "tool.ts")?;
        }
        Ok(Inspection { findings, tool_calls })
    })
}

pub(crate) struct Findings<'t, 's> {
    lines: &'t Lines<'s>,
    found: Vec<Finding>,
}

impl Findings<'_, '_> {
    pub(crate) fn add(&mut self, rule: Rule, span: Span, message: impl Into<String>) {
        if self.found.len() >= MAX_FINDINGS {
            return;
        }
        let (line, column) = self.lines.of(span.start as usize);
        self.found.push(Finding { rule, line, column, message: message.into() });
    }
}
