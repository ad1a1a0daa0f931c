//! The entry that a runner calls: `export async function execute(input, context)`.

use oxc::ast::ast::{
    BindingPattern, Declaration, ExportDefaultDeclarationKind, Expression, Function, Program, Statement,
    VariableDeclaration,
};
use oxc::span::{GetSpan, Span};

use crate::inspect::{Findings, Rule};

const NAME: &str = "execute";
const MISSING: &str = "the code does not export execute: add export async function execute(input, context) { … }";
const ONLY_DEFAULT: &str =
    "a default export is not enough: the runner calls execute by name; write export async function execute(…)";
const ONLY_TYPE: &str = "execute is exported as a type only: export the function itself";
const NO_FUNCTION: &str = "execute is exported, but the source does not show that it is a function: write it as \
                           async function execute(input, context) { … }";
const NOT_ASYNC: &str = "execute must be async: write async before it, and await what it calls";
const GENERATOR: &str = "execute must not be a generator: remove the * and return the result";

/// The declaration of a name.
#[derive(Clone, Copy)]
enum ExportedValue {
    Function {
        is_async: bool,
        is_generator: bool,
        span: Span,
    },
    /// Something whose kind is not known from the source.
    Other(Span),
}

/// How the module exports `execute`.
enum Exported {
    No,
    TypeOnly(Span),
    As(ExportedValue),
}

pub(crate) fn check(program: &Program<'_>, findings: &mut Findings<'_, '_>) {
    match exported(program) {
        Exported::No => match default_export(program) {
            Some(span) => findings.add(Rule::ExecuteExported, span, ONLY_DEFAULT),
            None => findings.add(Rule::ExecuteExported, Span::new(0, 0), MISSING),
        },
        Exported::TypeOnly(span) => findings.add(Rule::ExecuteExported, span, ONLY_TYPE),
        Exported::As(ExportedValue::Other(span)) => findings.add(Rule::ExecuteAsync, span, NO_FUNCTION),
        Exported::As(ExportedValue::Function { is_async, is_generator, span }) => {
            if !is_async {
                findings.add(Rule::ExecuteAsync, span, NOT_ASYNC);
            }
            if is_generator {
                findings.add(Rule::ExecuteAsync, span, GENERATOR);
            }
        }
    }
}

fn exported(program: &Program<'_>) -> Exported {
    for statement in &program.body {
        match statement {
            Statement::ExportDeclaration(export) => {
                if let Some(meant) = declared(&export.declaration, NAME) {
                    return Exported::As(meant);
                }
            }
            Statement::ExportNamedDeclaration(export) => {
                let Some(specifier) = export.specifiers.iter().find(|specifier| specifier.exported.name() == NAME)
                else {
                    continue;
                };
                if export.export_kind.is_type() || specifier.export_kind.is_type() {
                    return Exported::TypeOnly(specifier.span);
                }
                let local = specifier.local.name();
                return Exported::As(
                    top_level(program, local.as_str()).unwrap_or(ExportedValue::Other(specifier.span)),
                );
            }
            _ => {}
        }
    }
    Exported::No
}

fn default_export(program: &Program<'_>) -> Option<Span> {
    program.body.iter().find_map(|statement| match statement {
        Statement::ExportDefaultDeclaration(export)
            if !matches!(export.declaration, ExportDefaultDeclarationKind::TSInterfaceDeclaration(_)) =>
        {
            Some(export.span)
        }
        _ => None,
    })
}

/// Finds the declaration of a name in the module's scope.
fn top_level(program: &Program<'_>, name: &str) -> Option<ExportedValue> {
    program.body.iter().find_map(|statement| match statement {
        Statement::FunctionDeclaration(function) => function_named(function, name),
        Statement::VariableDeclaration(variables) => variable_named(variables, name),
        Statement::ExportDeclaration(export) => declared(&export.declaration, name),
        Statement::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => function_named(function, name),
            _ => None,
        },
        _ => None,
    })
}

fn declared(declaration: &Declaration<'_>, name: &str) -> Option<ExportedValue> {
    match declaration {
        Declaration::FunctionDeclaration(function) => function_named(function, name),
        Declaration::VariableDeclaration(variables) => variable_named(variables, name),
        Declaration::ClassDeclaration(class) => {
            let id = class.id.as_ref().filter(|id| id.name == name)?;
            Some(ExportedValue::Other(id.span))
        }
        _ => None,
    }
}

/// Overload signatures and `declare function` have no body and are skipped.
fn function_named(function: &Function<'_>, name: &str) -> Option<ExportedValue> {
    let id = function.id.as_ref().filter(|id| id.name == name)?;
    function.body.as_ref()?;
    Some(ExportedValue::Function { is_async: function.r#async, is_generator: function.generator, span: id.span })
}

fn variable_named(variables: &VariableDeclaration<'_>, name: &str) -> Option<ExportedValue> {
    if variables.declare {
        return None;
    }
    variables.declarations.iter().find_map(|variable| {
        let BindingPattern::BindingIdentifier(id) = &variable.id else { return None };
        if id.name != name {
            return None;
        }
        let Some(init) = &variable.init else { return Some(ExportedValue::Other(id.span)) };
        Some(match init.get_inner_expression() {
            Expression::ArrowFunctionExpression(arrow) => {
                ExportedValue::Function { is_async: arrow.r#async, is_generator: false, span: id.span }
            }
            Expression::FunctionExpression(function) => {
                ExportedValue::Function { is_async: function.r#async, is_generator: function.generator, span: id.span }
            }
            other => ExportedValue::Other(other.span()),
        })
    })
}
