//! Finds code that tools must not use: code from strings, and imports.

use oxc::ast::ast::{
    Argument, AssignmentExpression, AssignmentTarget, AssignmentTargetProperty, BinaryExpression, BindingPattern,
    CallExpression, ExportAllDeclaration, ExportFromDeclaration, Expression, IdentifierReference, ImportDeclaration,
    ImportExpression, ImportMeta, MemberExpression, NewExpression, TSImportType, TSTypeQuery, TSTypeQueryExprName,
    VariableDeclarator,
};
use oxc::ast_visit::{Visit, walk};
use oxc::span::{GetSpan, Span};

use crate::inspect::{Findings, Rule};
use crate::names::Names;
use crate::syntax::Tree;

const TIMERS: [&str; 2] = ["setTimeout", "setInterval"];

const EVAL: &str = "eval runs text as code, which is not allowed: parse the text, or use JSON.parse for data";
const FUNCTION: &str = "a Function constructor runs text as code, which is not allowed: write the function itself";
const REQUIRE: &str = "require is not available: a tool has no modules; use the web platform (fetch, crypto, URL) and \
                       context.api";
const IMPORT: &str = "imports are not allowed: put what the tool needs into its own source";
const DYNAMIC_IMPORT: &str = "import() is not allowed: put what the tool needs into its own source";
const META: &str = "import.meta is not allowed: a tool has no module URL";
const STRING_TIMER: &str = "a timer with a string runs text as code, which is not allowed: pass a function";

pub(crate) fn find(tree: &Tree<'_, '_>, findings: &mut Findings<'_, '_>) {
    let names = Names::of(tree);
    Finder { names, findings }.visit_program(&tree.program);
}

struct Finder<'t, 'f, 'l, 's> {
    names: Names<'t>,
    findings: &'f mut Findings<'l, 's>,
}

impl Finder<'_, '_, '_, '_> {
    /// A property that is read from `object`, by access or by destructuring.
    fn property_read(&mut self, object: &Expression<'_>, name: &str, span: Span) {
        if self.names.is_global_object(object) {
            self.global_read(name, span);
        } else if name == "constructor" && (self.names.is_function(object) || self.names.reads_constructor(object)) {
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

    /// `Reflect.get(object, "name")` and similar.
    fn reflection(&mut self, callee: &Expression<'_>, arguments: &[Argument<'_>]) {
        let Some(member) = callee.get_inner_expression().as_member_expression() else { return };
        let Expression::Identifier(owner) = member.object().get_inner_expression() else { return };
        let reads = matches!(
            (owner.name.as_str(), self.names.property(member).as_deref()),
            ("Reflect", Some("get")) | ("Reflect" | "Object", Some("getOwnPropertyDescriptor"))
        );
        if !reads || !self.names.is_global(owner) {
            return;
        }
        let mut given = arguments.iter().map_while(Argument::as_expression);
        if let (Some(object), Some(key)) = (given.next(), given.next())
            && let Some(name) = self.names.text(key)
        {
            self.property_read(object, &name, callee.span());
        }
    }

    /// `callee(arguments)` or `new callee(arguments)`.
    fn call(&mut self, callee: &Expression<'_>, arguments: &[Argument<'_>]) {
        let first = arguments.first().and_then(Argument::as_expression);
        let callee = callee.get_inner_expression();
        let text_given = first.is_some_and(|argument| self.names.is_text(argument));
        let timer = match callee {
            Expression::Identifier(name) => TIMERS.contains(&name.name.as_str()) && self.names.is_global(name),
            other => other.as_member_expression().is_some_and(|member| {
                self.names.property(member).is_some_and(|name| TIMERS.contains(&name.as_str()))
                    && self.names.is_global_object(member.object())
            }),
        };
        if timer && text_given {
            self.findings.add(Rule::NoStringTimer, first.map_or(callee.span(), GetSpan::span), STRING_TIMER);
        }
        // `x.constructor("return 1")` does not copy an object: x is a function.
        if let Some(member) = callee.as_member_expression()
            && self.names.property(member).as_deref() == Some("constructor")
            && arguments.iter().filter_map(Argument::as_expression).any(|argument| self.names.is_text(argument))
            && !matches!(member.object().get_inner_expression(), Expression::ThisExpression(_))
        {
            self.findings.add(Rule::NoFunctionConstructor, callee.span(), FUNCTION);
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
        // `x instanceof Function` does not call it.
        let asks = it.operator.as_str() == "instanceof"
            && matches!(it.right.get_inner_expression(), Expression::Identifier(name) if name.name == "Function");
        if !asks {
            self.visit_expression(&it.right);
        }
    }

    fn visit_member_expression(&mut self, it: &MemberExpression<'a>) {
        if let Some(name) = self.names.property(it) {
            self.property_read(it.object(), &name, it.span());
        }
        walk::walk_member_expression(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if let (BindingPattern::ObjectPattern(pattern), Some(init)) = (&it.id, &it.init) {
            for binding in &pattern.properties {
                if let Some(name) = self.names.key_name(&binding.key) {
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
                    AssignmentTargetProperty::AssignmentTargetPropertyProperty(pair) => self.names.key_name(&pair.name),
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
        self.reflection(&it.callee, &it.arguments);
        // With `new` it may create another object of the same class. Without `new` a class cannot
        // be called, but `Function` can.
        if let Expression::Identifier(name) = it.callee.get_inner_expression()
            && self.names.holds_constructor(name)
            && it.arguments.iter().filter_map(Argument::as_expression).any(|argument| self.names.is_text(argument))
        {
            self.findings.add(Rule::NoFunctionConstructor, it.callee.span(), FUNCTION);
        }
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

    /// `typeof eval` in a type reads nothing at run time.
    fn visit_ts_type_query(&mut self, it: &TSTypeQuery<'a>) {
        if let TSTypeQueryExprName::TSImportType(import) = &it.expr_name {
            self.visit_ts_import_type(import);
        }
        if let Some(arguments) = &it.type_arguments {
            self.visit_ts_type_parameter_instantiation(arguments);
        }
    }

    fn visit_ts_import_type(&mut self, it: &TSImportType<'a>) {
        self.findings.add(Rule::NoImport, it.span, IMPORT);
    }
}
