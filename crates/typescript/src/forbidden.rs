//! Code from strings and code from elsewhere: what tool code must not reach for.

use std::collections::HashSet;

use oxc::ast::ast::{
    Argument, AssignmentTarget, AssignmentTargetProperty, BindingPattern, CallExpression, ExportAllDeclaration,
    ExportFromDeclaration, Expression, IdentifierReference, ImportDeclaration, ImportExpression, ImportMeta,
    MemberExpression, NewExpression, TSImportType, VariableDeclarator,
};
use oxc::ast::ast::{AssignmentExpression, BinaryExpression, PropertyKey};
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::{Scoping, SymbolId};
use oxc::span::{GetSpan, Span};

use crate::inspect::{Findings, Rule};
use crate::static_text::static_text;
use crate::syntax::Tree;

const GLOBAL_OBJECTS: [&str; 4] = ["globalThis", "window", "self", "global"];
const TIMERS: [&str; 2] = ["setTimeout", "setInterval"];

/// How far a chain such as `self.self.self` is followed: each link of it is looked at from each end.
const MAX_LOOK: u32 = 16;

const EVAL: &str = "eval runs text as code, which tools must not: parse the text, or use JSON.parse for data";
const FUNCTION: &str = "a Function constructor runs text as code, which tools must not: write the function itself";
const REQUIRE: &str = "require is not there: a tool stands alone; use the web platform (fetch, crypto, URL) and \
                       context.api";
const IMPORT: &str = "imports are not allowed: a tool stands alone; put what it needs into its own source";
const DYNAMIC_IMPORT: &str = "import() is not allowed: a tool stands alone; put what it needs into its own source";
const META: &str = "import.meta is not there: a tool has no module address";
const STRING_TIMER: &str = "a timer with a string runs text as code, which tools must not: give it a function";

pub(crate) fn find(tree: &Tree<'_, '_>, findings: &mut Findings<'_, '_>) {
    let mut names = Names { scoping: &tree.scoping, globals: HashSet::new(), functions: HashSet::new() };
    names.visit_program(&tree.program);
    Finder { names, findings }.visit_program(&tree.program);
}

/// Variables that hold the global object or a function, as far as their declarations say.
struct Names<'t> {
    scoping: &'t Scoping,
    globals: HashSet<SymbolId>,
    functions: HashSet<SymbolId>,
}

impl Names<'_> {
    fn symbol(&self, name: &IdentifierReference<'_>) -> Option<SymbolId> {
        let reference = self.scoping.get_reference(name.reference_id.get()?);
        reference.symbol_id()
    }

    /// A reference to the global of this name: nothing in the source declares it (`declare` declares nothing).
    fn is_global(&self, name: &IdentifierReference<'_>) -> bool {
        self.symbol(name).is_none_or(|symbol| self.scoping.symbol_flags(symbol).is_ambient())
    }

    fn is_value(&self, name: &IdentifierReference<'_>) -> bool {
        name.reference_id.get().is_none_or(|id| !self.scoping.get_reference(id).flags().is_type_only())
    }

    fn is_global_object(&self, expression: &Expression<'_>) -> bool {
        self.is_global_object_within(expression, MAX_LOOK)
    }

    fn is_global_object_within(&self, expression: &Expression<'_>, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        match expression.get_inner_expression() {
            Expression::Identifier(name) => match self.symbol(name) {
                Some(symbol) if self.globals.contains(&symbol) => true,
                _ => GLOBAL_OBJECTS.contains(&name.name.as_str()) && self.is_global(name),
            },
            // globalThis.globalThis, window.self, …
            inner => inner.as_member_expression().is_some_and(|member| {
                property(member).is_some_and(|name| GLOBAL_OBJECTS.contains(&name.as_str()))
                    && self.is_global_object_within(member.object(), steps)
            }),
        }
    }

    /// An expression that is a function, or that has a function's prototype.
    fn is_function(&self, expression: &Expression<'_>) -> bool {
        self.is_function_within(expression, MAX_LOOK)
    }

    fn is_function_within(&self, expression: &Expression<'_>, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        match expression.get_inner_expression() {
            Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::ClassExpression(_) => true,
            Expression::Identifier(name) => self.symbol(name).is_some_and(|symbol| {
                let flags = self.scoping.symbol_flags(symbol);
                flags.is_function() || flags.is_class() || self.functions.contains(&symbol)
            }),
            Expression::CallExpression(call) => {
                let is_prototype = call
                    .callee
                    .get_inner_expression()
                    .as_member_expression()
                    .is_some_and(|member| property(member).as_deref() == Some("getPrototypeOf"));
                is_prototype
                    && call
                        .arguments
                        .first()
                        .and_then(Argument::as_expression)
                        .is_some_and(|of| self.is_function_within(of, steps))
            }
            inner => inner.as_member_expression().is_some_and(|member| {
                property(member).as_deref() == Some("__proto__") && self.is_function_within(member.object(), steps)
            }),
        }
    }
}

impl<'a> Visit<'a> for Names<'_> {
    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if let (BindingPattern::BindingIdentifier(name), Some(init)) = (&it.id, &it.init)
            && let Some(symbol) = name.symbol_id.get()
        {
            if self.is_global_object(init) {
                self.globals.insert(symbol);
            } else if self.is_function(init) {
                self.functions.insert(symbol);
            }
        }
        walk::walk_variable_declarator(self, it);
    }
}

/// The name that a member access reads, where the source shows it.
fn property(member: &MemberExpression<'_>) -> Option<String> {
    match member {
        MemberExpression::StaticMemberExpression(member) => Some(member.property.name.to_string()),
        MemberExpression::ComputedMemberExpression(member) => static_text(&member.expression),
        MemberExpression::PrivateFieldExpression(_) => None,
    }
}

fn key_name(key: &PropertyKey<'_>) -> Option<String> {
    match key {
        PropertyKey::StaticIdentifier(name) => Some(name.name.to_string()),
        PropertyKey::PrivateIdentifier(_) => None,
        other => other.as_expression().and_then(static_text),
    }
}

struct Finder<'t, 'f, 'l, 's> {
    names: Names<'t>,
    findings: &'f mut Findings<'l, 's>,
}

impl Finder<'_, '_, '_, '_> {
    /// A property read from `object`, by access or by destructuring.
    fn property_read(&mut self, object: &Expression<'_>, name: &str, span: Span) {
        if self.names.is_global_object(object) {
            self.global_read(name, span);
        } else if name == "constructor" && (self.names.is_function(object) || is_constructor(object)) {
            self.findings.add(Rule::NoFunctionConstructor, span, FUNCTION);
        }
    }

    fn global_read(&mut self, name: &str, span: Span) {
        match name {
            "eval" => self.findings.add(Rule::NoEval, span, EVAL),
            "Function" => self.findings.add(Rule::NoFunctionConstructor, span, FUNCTION),
            "require" => self.findings.add(Rule::NoRequire, span, REQUIRE),
            _ => {}
        }
    }

    /// `callee(arguments)` or `new callee(arguments)`.
    fn call(&mut self, callee: &Expression<'_>, arguments: &[Argument<'_>]) {
        let first = arguments.first().and_then(Argument::as_expression);
        let callee = callee.get_inner_expression();
        let text_given = first.is_some_and(|argument| is_text(argument));
        let timer = match callee {
            Expression::Identifier(name) => TIMERS.contains(&name.name.as_str()) && self.names.is_global(name),
            other => other.as_member_expression().is_some_and(|member| {
                property(member).is_some_and(|name| TIMERS.contains(&name.as_str()))
                    && self.names.is_global_object(member.object())
            }),
        };
        if timer && text_given {
            self.findings.add(Rule::NoStringTimer, first.map_or(callee.span(), GetSpan::span), STRING_TIMER);
        }
        // x.constructor("return 1") is no way to copy an object: x is a function.
        if let Some(member) = callee.as_member_expression()
            && property(member).as_deref() == Some("constructor")
            && arguments.iter().filter_map(Argument::as_expression).any(is_text)
            && !matches!(member.object().get_inner_expression(), Expression::ThisExpression(_))
        {
            self.findings.add(Rule::NoFunctionConstructor, callee.span(), FUNCTION);
        }
    }
}

/// `x.constructor`.
fn is_constructor(expression: &Expression<'_>) -> bool {
    let inner = expression.get_inner_expression();
    inner.as_member_expression().is_some_and(|member| property(member).as_deref() == Some("constructor"))
}

/// A string or a template, or a sum that has one: text whatever the rest is.
fn is_text(expression: &Expression<'_>) -> bool {
    let mut expression = expression.get_inner_expression();
    loop {
        match expression {
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => return true,
            Expression::BinaryExpression(sum) if sum.operator.as_str() == "+" => {
                if matches!(
                    sum.right.get_inner_expression(),
                    Expression::StringLiteral(_) | Expression::TemplateLiteral(_)
                ) {
                    return true;
                }
                expression = sum.left.get_inner_expression();
            }
            _ => return false,
        }
    }
}

impl<'a> Visit<'a> for Finder<'_, '_, '_, '_> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if self.names.is_global(it) && self.names.is_value(it) {
            self.global_read(it.name.as_str(), it.span);
        }
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        self.visit_expression(&it.left);
        // `x instanceof Function` only asks.
        let asks = it.operator.as_str() == "instanceof"
            && matches!(it.right.get_inner_expression(), Expression::Identifier(name) if name.name == "Function");
        if !asks {
            self.visit_expression(&it.right);
        }
    }

    fn visit_member_expression(&mut self, it: &MemberExpression<'a>) {
        if let Some(name) = property(it) {
            self.property_read(it.object(), &name, it.span());
        }
        walk::walk_member_expression(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if let (BindingPattern::ObjectPattern(pattern), Some(init)) = (&it.id, &it.init) {
            for binding in &pattern.properties {
                if let Some(name) = key_name(&binding.key) {
                    self.property_read(init, &name, binding.span);
                }
            }
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        if let AssignmentTarget::ObjectAssignmentTarget(target) = &it.left {
            for given in &target.properties {
                let name = match given {
                    AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(name) => {
                        Some(name.binding.name.to_string())
                    }
                    AssignmentTargetProperty::AssignmentTargetPropertyProperty(pair) => key_name(&pair.name),
                };
                if let Some(name) = name {
                    self.property_read(&it.right, &name, given.span());
                }
            }
        }
        walk::walk_assignment_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.call(&it.callee, &it.arguments);
        walk::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.call(&it.callee, &it.arguments);
        walk::walk_new_expression(self, it);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        self.findings.add(Rule::NoDynamicImport, it.span, DYNAMIC_IMPORT);
        walk::walk_import_expression(self, it);
    }

    fn visit_import_meta(&mut self, it: &ImportMeta) {
        self.findings.add(Rule::NoImportMeta, it.span, META);
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        self.findings.add(Rule::NoImport, it.span, IMPORT);
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        self.findings.add(Rule::NoImport, it.span, IMPORT);
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        self.findings.add(Rule::NoImport, it.span, IMPORT);
    }

    fn visit_ts_import_type(&mut self, it: &TSImportType<'a>) {
        self.findings.add(Rule::NoImport, it.span, IMPORT);
    }
}
