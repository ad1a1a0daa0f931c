//! The only way to a syntax tree in this crate: bounded, checked, and on a large enough stack.

use oxc::allocator::Allocator;
use oxc::ast::ast::Program;
use oxc::diagnostics::{Diagnostics, OxcDiagnostic};
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::{Scoping, SemanticBuilder};
use oxc::span::SourceType;

use crate::position::Lines;
use crate::{Dialect, MAX_SOURCE_BYTES, SyntaxError, nesting};

/// Far more than `nesting::MAX_NESTING` levels need. Unused pages cost nothing.
const STACK_BYTES: usize = 128 * 1024 * 1024;

/// Limit on the errors for one source; more do not help its author.
pub(crate) const MAX_ERRORS: usize = 50;

/// A checked syntax tree with its scopes. It is the author's tree: types are not stripped yet.
pub(crate) struct Tree<'t, 'a> {
    pub allocator: &'a Allocator,
    pub program: Program<'a>,
    pub scoping: Scoping,
    pub lines: &'t Lines<'a>,
}

/// Parses `source` and passes the tree to `then`, on a thread with a large stack: parser and
/// visitors are recursive.
pub(crate) fn with_tree<T: Send>(
    source: &str,
    dialect: Dialect,
    then: impl FnOnce(Tree<'_, '_>) -> Result<T, Vec<SyntaxError>> + Send,
) -> Result<T, Vec<SyntaxError>> {
    if source.len() > MAX_SOURCE_BYTES {
        let message = format!("the source has {} bytes; at most {MAX_SOURCE_BYTES} are allowed", source.len());
        return Err(vec![SyntaxError { line: 1, column: 1, message }]);
    }
    let lines = Lines::new(source);
    if let Err(refused) = nesting::check(source) {
        let (line, column) = lines.of(refused.offset);
        return Err(vec![SyntaxError { line, column, message: refused.message.to_owned() }]);
    }
    std::thread::scope(|scope| {
        let parsing = std::thread::Builder::new()
            .name("typescript".into())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || parse(source, dialect, &lines, then));
        match parsing.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            // A panic in the parser is a bug there. The source is refused, and the process
            // continues.
            Ok(Err(_)) => Err(vec![whole("the TypeScript front end failed on this source")]),
            Err(error) => Err(vec![whole(&format!("cannot start a thread to parse the source: {error}"))]),
        }
    })
}

fn parse<T>(
    source: &str,
    dialect: Dialect,
    lines: &Lines<'_>,
    then: impl FnOnce(Tree<'_, '_>) -> Result<T, Vec<SyntaxError>>,
) -> Result<T, Vec<SyntaxError>> {
    let allocator = Allocator::default();
    let source_type = match dialect {
        Dialect::TypeScript => SourceType::ts(),
        Dialect::JavaScript => SourceType::mjs(),
    };
    let options = ParseOptions { parse_regular_expression: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, source_type).with_options(options).parse();
    if parsed.panicked || parsed.diagnostics.has_errors() {
        return Err(errors(&parsed.diagnostics, lines));
    }
    let program = parsed.program;
    let checked = SemanticBuilder::new().with_check_syntax_error(true).with_enum_eval(true).build(&program);
    if checked.diagnostics.has_errors() {
        return Err(errors(&checked.diagnostics, lines));
    }
    let scoping = checked.semantic.into_scoping();
    then(Tree { allocator: &allocator, program, scoping, lines })
}

/// Errors that an engine would report in emitted JavaScript, with positions in it. TypeScript's own
/// checks allow some for the sake of types: a name declared twice may be overloads, an exported
/// name may be a type.
pub(crate) fn check_emitted(javascript: &str) -> Vec<SyntaxError> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, javascript, SourceType::mjs()).parse();
    let lines = Lines::new(javascript);
    if parsed.panicked || parsed.diagnostics.has_errors() {
        return errors(&parsed.diagnostics, &lines);
    }
    let checked = SemanticBuilder::new().with_check_syntax_error(true).build(&parsed.program);
    if checked.diagnostics.has_errors() { errors(&checked.diagnostics, &lines) } else { Vec::new() }
}

/// The front end's diagnostics as errors with positions; never empty.
pub(crate) fn errors(diagnostics: &Diagnostics, lines: &Lines<'_>) -> Vec<SyntaxError> {
    let mut found: Vec<SyntaxError> =
        diagnostics.errors().take(MAX_ERRORS).map(|diagnostic| error(diagnostic, lines)).collect();
    if found.is_empty() {
        found.push(whole("the source cannot be parsed"));
    }
    found
}

fn error(diagnostic: &OxcDiagnostic, lines: &Lines<'_>) -> SyntaxError {
    let offset = diagnostic.labels.first().map_or(0, |label| label.offset() as usize);
    let (line, column) = lines.of(offset);
    let mut message = diagnostic.message.to_string();
    if let Some(help) = &diagnostic.help {
        message = format!("{message} ({help})");
    }
    SyntaxError { line, column, message }
}

fn whole(message: &str) -> SyntaxError {
    SyntaxError { line: 1, column: 1, message: message.to_owned() }
}
