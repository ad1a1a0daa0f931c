//! Finds the calls of other tools in a tool's code.

use oxc::ast::ast::{Argument, CallExpression, Expression};
use oxc::ast_visit::{Visit, walk};
use oxc::span::GetSpan;

use crate::names::Names;
use crate::position::Lines;
use crate::syntax::Tree;

/// A call `context.api.callTool("name", …)`. Line and column are those of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub name: String,
    pub line: u32,
    pub column: u32,
}

/// Limit on the calls for one source; more do not help an author.
const MAX_CALLS: usize = 200;

/// The calls in the order in which a walk meets them.
pub(crate) fn find(tree: &Tree<'_, '_>) -> Vec<ToolCall> {
    let mut finder = Finder { names: Names::of(tree), lines: tree.lines, found: Vec::new() };
    finder.visit_program(&tree.program);
    finder.found
}

struct Finder<'t, 'l, 's> {
    names: Names<'t>,
    lines: &'l Lines<'s>,
    found: Vec<ToolCall>,
}

impl Finder<'_, '_, '_> {
    /// Whether an expression is `context.api.callTool`.
    fn is_call_tool(&self, callee: &Expression<'_>) -> bool {
        let Some(method) = callee.get_inner_expression().as_member_expression() else { return false };
        let Some(api) = method.object().get_inner_expression().as_member_expression() else { return false };
        self.names.property(method).as_deref() == Some("callTool")
            && self.names.property(api).as_deref() == Some("api")
            && matches!(api.object().get_inner_expression(), Expression::Identifier(_))
    }
}

impl<'a> Visit<'a> for Finder<'_, '_, '_> {
    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if self.found.len() < MAX_CALLS
            && self.is_call_tool(&it.callee)
            && let Some(first) = it.arguments.first().and_then(Argument::as_expression)
            && let Some(name) = self.names.text(first)
        {
            let (line, column) = self.lines.of(first.span().start as usize);
            self.found.push(ToolCall { name, line, column });
        }
        walk::walk_call_expression(self, it);
    }
}
