//! What names and expressions refer to, as far as the source shows without running it.

use std::collections::{HashMap, HashSet};

use oxc::ast::ast::{
    Argument, BindingPattern, Expression, IdentifierReference, MemberExpression, PropertyKey, VariableDeclarator,
};
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::{Scoping, SymbolId};

use crate::static_text::static_text;
use crate::syntax::Tree;

const GLOBAL_OBJECTS: [&str; 4] = ["globalThis", "window", "self", "global"];

/// Globals that are functions, or whose methods tools call.
const BUILT_IN_FUNCTIONS: &[&str] = &[
    "Array",
    "BigInt",
    "Boolean",
    "Date",
    "Error",
    "Map",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RegExp",
    "Set",
    "String",
    "Symbol",
    "URL",
    "decodeURIComponent",
    "encodeURIComponent",
    "fetch",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
    "queueMicrotask",
    "setInterval",
    "setTimeout",
    "structuredClone",
];
const NAMESPACES: &[&str] = &["Atomics", "JSON", "Math", "Reflect"];

/// How far a chain such as `self.self.self` is followed: each link is checked from each end.
const MAX_LOOK: u32 = 16;

/// Variables that hold the global object, a function, a constructor or a text, according to their
/// declarations.
pub(crate) struct Names<'t> {
    scoping: &'t Scoping,
    globals: HashSet<SymbolId>,
    functions: HashSet<SymbolId>,
    constructors: HashSet<SymbolId>,
    texts: HashMap<SymbolId, String>,
}

impl<'t> Names<'t> {
    pub(crate) fn of(tree: &'t Tree<'_, '_>) -> Self {
        let mut names = Self {
            scoping: &tree.scoping,
            globals: HashSet::new(),
            functions: HashSet::new(),
            constructors: HashSet::new(),
            texts: HashMap::new(),
        };
        names.visit_program(&tree.program);
        names
    }

    fn symbol(&self, name: &IdentifierReference<'_>) -> Option<SymbolId> {
        let reference = self.scoping.get_reference(name.reference_id.get()?);
        reference.symbol_id()
    }

    /// Whether a reference is to the global of this name: nothing in the source declares it
    /// (`declare` declares nothing).
    pub(crate) fn is_global(&self, name: &IdentifierReference<'_>) -> bool {
        self.symbol(name).is_none_or(|symbol| self.scoping.symbol_flags(symbol).is_ambient())
    }

    pub(crate) fn is_value(&self, name: &IdentifierReference<'_>) -> bool {
        name.reference_id.get().is_none_or(|id| !self.scoping.get_reference(id).flags().is_type_only())
    }

    /// The text of an expression, if the source shows it.
    pub(crate) fn text(&self, expression: &Expression<'_>) -> Option<String> {
        static_text(expression, |name| self.texts.get(&self.symbol(name)?).map(String::as_str))
    }

    /// The property name of a member access, if the source shows it.
    pub(crate) fn property(&self, member: &MemberExpression<'_>) -> Option<String> {
        match member {
            MemberExpression::StaticMemberExpression(member) => Some(member.property.name.to_string()),
            MemberExpression::ComputedMemberExpression(member) => self.text(&member.expression),
            MemberExpression::PrivateFieldExpression(_) => None,
        }
    }

    pub(crate) fn key_name(&self, key: &PropertyKey<'_>) -> Option<String> {
        match key {
            PropertyKey::StaticIdentifier(name) => Some(name.name.to_string()),
            PropertyKey::PrivateIdentifier(_) => None,
            other => other.as_expression().and_then(|key| self.text(key)),
        }
    }

    /// Whether an expression is text: a string, a template, the name of one, or a sum with one of
    /// them.
    pub(crate) fn is_text(&self, expression: &Expression<'_>) -> bool {
        let is_one = |part: &Expression<'_>| match part {
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => true,
            Expression::Identifier(name) => self.symbol(name).is_some_and(|symbol| self.texts.contains_key(&symbol)),
            _ => false,
        };
        let mut expression = expression.get_inner_expression();
        loop {
            match expression {
                Expression::BinaryExpression(sum) if sum.operator.as_str() == "+" => {
                    if is_one(sum.right.get_inner_expression()) {
                        return true;
                    }
                    expression = sum.left.get_inner_expression();
                }
                other => return is_one(other),
            }
        }
    }

    pub(crate) fn is_global_object(&self, expression: &Expression<'_>) -> bool {
        self.is_global_object_within(expression, MAX_LOOK)
    }

    fn is_global_object_within(&self, expression: &Expression<'_>, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        match expression.get_inner_expression() {
            Expression::Identifier(name) => match self.symbol(name) {
                Some(symbol) if self.globals.contains(&symbol) => true,
                _ => GLOBAL_OBJECTS.contains(&name.name.as_str()) && self.is_global(name),
            },
            Expression::SequenceExpression(sequence) => {
                sequence.expressions.last().is_some_and(|last| self.is_global_object_within(last, steps))
            }
            Expression::AwaitExpression(awaited) => self.is_global_object_within(&awaited.argument, steps),
            // globalThis.globalThis, window.self, …
            inner => inner.as_member_expression().is_some_and(|member| {
                self.property(member).is_some_and(|name| GLOBAL_OBJECTS.contains(&name.as_str()))
                    && self.is_global_object_within(member.object(), steps)
            }),
        }
    }

    /// Whether an expression is a function or a function's prototype.
    pub(crate) fn is_function(&self, expression: &Expression<'_>) -> bool {
        self.is_function_within(expression, MAX_LOOK)
    }

    fn is_function_within(&self, expression: &Expression<'_>, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        match expression.get_inner_expression() {
            Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::ClassExpression(_) => true,
            Expression::Identifier(name) if self.is_global(name) => BUILT_IN_FUNCTIONS.contains(&name.name.as_str()),
            Expression::Identifier(name) => self.symbol(name).is_some_and(|symbol| {
                let flags = self.scoping.symbol_flags(symbol);
                flags.is_function() || flags.is_class() || self.functions.contains(&symbol)
            }),
            Expression::SequenceExpression(sequence) => {
                sequence.expressions.last().is_some_and(|last| self.is_function_within(last, steps))
            }
            Expression::CallExpression(call) => {
                let is_prototype = call
                    .callee
                    .get_inner_expression()
                    .as_member_expression()
                    .is_some_and(|member| self.property(member).as_deref() == Some("getPrototypeOf"));
                is_prototype
                    && call
                        .arguments
                        .first()
                        .and_then(Argument::as_expression)
                        .is_some_and(|of| self.is_function_within(of, steps))
            }
            inner => inner.as_member_expression().is_some_and(|member| match self.property(member).as_deref() {
                Some("__proto__") => self.is_function_within(member.object(), steps),
                Some(name) => self.is_built_in_method(member.object(), name),
                None => false,
            }),
        }
    }

    /// `Math.max`, `Object.keys`; not `Math.PI`.
    fn is_built_in_method(&self, object: &Expression<'_>, name: &str) -> bool {
        let Expression::Identifier(owner) = object.get_inner_expression() else { return false };
        let owner_name = owner.name.as_str();
        (BUILT_IN_FUNCTIONS.contains(&owner_name) || NAMESPACES.contains(&owner_name))
            && self.is_global(owner)
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && !matches!(name, "prototype" | "constructor" | "name" | "length")
    }

    /// `x.constructor`.
    pub(crate) fn reads_constructor(&self, expression: &Expression<'_>) -> bool {
        let inner = expression.get_inner_expression();
        inner.as_member_expression().is_some_and(|member| self.property(member).as_deref() == Some("constructor"))
    }

    /// Whether a variable was declared as `x.constructor`, for any `x` except `this`.
    pub(crate) fn holds_constructor(&self, name: &IdentifierReference<'_>) -> bool {
        self.symbol(name).is_some_and(|symbol| self.constructors.contains(&symbol))
    }
}

impl<'a> Visit<'a> for Names<'_> {
    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if let (BindingPattern::BindingIdentifier(name), Some(init)) = (&it.id, &it.init)
            && let Some(symbol) = name.symbol_id.get()
        {
            let of_this = init
                .get_inner_expression()
                .as_member_expression()
                .is_some_and(|member| matches!(member.object().get_inner_expression(), Expression::ThisExpression(_)));
            if self.is_global_object(init) {
                self.globals.insert(symbol);
            } else if self.is_function(init) {
                self.functions.insert(symbol);
            } else if self.reads_constructor(init) && !of_this {
                self.constructors.insert(symbol);
            } else if self.scoping.symbol_flags(symbol).is_const_variable()
                && let Some(text) = self.text(init)
            {
                self.texts.insert(symbol, text);
            }
        }
        walk::walk_variable_declarator(self, it);
    }
}
