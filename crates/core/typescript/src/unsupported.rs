//! Syntax that parses but that the engine does not support.

use oxc::ast::ast::{AccessorProperty, Decorator, TSExportAssignment, TSExternalModuleReference};
use oxc::ast_visit::{Visit, walk};
use oxc::span::Span;

use crate::SyntaxError;
use crate::position::Lines;
use crate::syntax::{MAX_ERRORS, Tree};

pub(crate) fn find(tree: &Tree<'_, '_>) -> Vec<SyntaxError> {
    let mut finder = Finder { lines: tree.lines, found: Vec::new() };
    finder.visit_program(&tree.program);
    finder.found
}

struct Finder<'t, 's> {
    lines: &'t Lines<'s>,
    found: Vec<SyntaxError>,
}

impl Finder<'_, '_> {
    fn add(&mut self, span: Span, message: &str) {
        if self.found.len() >= MAX_ERRORS {
            return;
        }
        let (line, column) = self.lines.of(span.start as usize);
        self.found.push(SyntaxError { line, column, message: message.to_owned() });
    }
}

impl<'a> Visit<'a> for Finder<'_, '_> {
    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.add(it.span, "decorators are not supported: call the function yourself");
        walk::walk_decorator(self, it);
    }

    fn visit_accessor_property(&mut self, it: &AccessorProperty<'a>) {
        self.add(it.span, "accessor fields are not supported: write a get and a set method");
        walk::walk_accessor_property(self, it);
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.add(it.span, "export = is not supported: the code is an ES module, use export");
        walk::walk_ts_export_assignment(self, it);
    }

    fn visit_ts_external_module_reference(&mut self, it: &TSExternalModuleReference<'a>) {
        self.add(it.span, "import = require(…) is not supported: tools cannot import anything");
    }
}
