//! Whether a tool's code changes objects of the language or of the platform, as far as the source
//! shows it. What is computed is not found: this only saves a run that would fail.

use oxc::ast::ast::{
    Argument, AssignmentExpression, CallExpression, Expression, MemberExpression, SimpleAssignmentTarget,
    UnaryExpression, UnaryOperator, UpdateExpression,
};
use oxc::ast_visit::{Visit, walk};

use crate::names::Names;
use crate::syntax::Tree;

/// How far a chain such as `a.b.c` is followed.
const MAX_CHAIN: usize = 16;
/// Functions that change their first argument.
const CHANGES: [(&str, &[&str]); 2] = [
    ("Object", &["assign", "defineProperties", "defineProperty", "setPrototypeOf"]),
    ("Reflect", &["defineProperty", "deleteProperty", "set", "setPrototypeOf"]),
];

pub(crate) fn are_there(tree: &Tree<'_, '_>) -> bool {
    let mut finder = Finder { names: Names::of(tree), is_found: false };
    finder.visit_program(&tree.program);
    finder.is_found
}

struct Finder<'t> {
    names: Names<'t>,
    is_found: bool,
}

impl Finder<'_> {
    /// Whether an expression is a global other than the global object, or is read from one:
    /// `Math`, `Array.prototype`, `globalThis.console`.
    fn is_of_a_global(&self, expression: &Expression<'_>) -> bool {
        let mut expression = expression.get_inner_expression();
        for _ in 0..MAX_CHAIN {
            if self.names.is_global_object(expression) {
                return false;
            }
            if let Expression::Identifier(name) = expression {
                return self.names.is_global(name);
            }
            let Some(member) = expression.as_member_expression() else { return false };
            if self.names.is_global_object(member.object()) {
                return true;
            }
            expression = member.object().get_inner_expression();
        }
        false
    }

    fn changed(&mut self, member: &MemberExpression<'_>) {
        self.is_found |= self.is_of_a_global(member.object());
    }

    fn assigned(&mut self, target: &SimpleAssignmentTarget<'_>) {
        if let Some(member) = target.as_member_expression() {
            self.changed(member);
        }
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        if let Some(target) = it.left.as_simple_assignment_target() {
            self.assigned(target);
        }
        walk::walk_assignment_expression(self, it);
    }

    fn visit_update_expression(&mut self, it: &UpdateExpression<'a>) {
        self.assigned(&it.argument);
        walk::walk_update_expression(self, it);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        if it.operator == UnaryOperator::Delete
            && let Some(member) = it.argument.get_inner_expression().as_member_expression()
        {
            self.changed(member);
        }
        walk::walk_unary_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Some(member) = it.callee.get_inner_expression().as_member_expression()
            && let Expression::Identifier(owner) = member.object().get_inner_expression()
            && let Some(name) = self.names.property(member)
            && CHANGES.iter().any(|(object, names)| *object == owner.name.as_str() && names.contains(&name.as_str()))
            && let Some(first) = it.arguments.first().and_then(Argument::as_expression)
        {
            self.is_found |= self.is_of_a_global(first);
        }
        walk::walk_call_expression(self, it);
    }
}
