//! Source → JavaScript and a source map.

use std::path::{Path, PathBuf};

use oxc::codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc::transformer::{TransformOptions, Transformer};

use crate::source_map::Segment;
use crate::syntax::{self, Tree};
use crate::{SourceMap, builtin_changes, unsupported};

/// The longest source that is read, in bytes.
pub const MAX_SOURCE_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    TypeScript,
    JavaScript,
}

/// A module, ready for the engine.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// An ES module without types. For JavaScript, the source without changes.
    pub javascript: String,
    pub source_map: SourceMap,
    /// The source changes objects of the language or of the platform, such as `Array.prototype`. It
    /// may do so without this, in a way that is computed.
    pub changes_builtins: bool,
}

/// Why a source cannot be compiled, and where. Lines and columns start at 1; columns count UTF-16
/// units.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct SyntaxError {
    pub line: u32,
    pub column: u32,
    pub message: String,
}

/// Strips the types and rewrites syntax that only TypeScript has (enums, namespaces, parameter
/// properties). The rest is not changed: the target is the newest ECMAScript. `file_name` is only a
/// name; nothing is read from disk.
///
/// Decorators, `accessor` fields and JSX are errors: the engine does not run them, and rewriting
/// them would need imports.
pub fn compile(source: &str, file_name: &str, dialect: Dialect) -> Result<Compiled, Vec<SyntaxError>> {
    syntax::with_tree(source, dialect, |tree| {
        let unsupported = unsupported::find(&tree);
        if !unsupported.is_empty() {
            return Err(unsupported);
        }
        match dialect {
            Dialect::JavaScript => Ok(Compiled {
                javascript: source.to_owned(),
                source_map: SourceMap::identity(),
                changes_builtins: builtin_changes::are_there(&tree),
            }),
            Dialect::TypeScript => emit(tree, file_name),
        }
    })
}

/// Emits JavaScript for a TypeScript tree. Fails if the result has an error that TypeScript's
/// checks allow for the sake of types.
pub(crate) fn emit(tree: Tree<'_, '_>, file_name: &str) -> Result<Compiled, Vec<SyntaxError>> {
    let changes_builtins = builtin_changes::are_there(&tree);
    let Tree { allocator, mut program, scoping, lines } = tree;
    let options = TransformOptions::default();
    let transformed =
        Transformer::new(allocator, Path::new(file_name), &options).build_with_scoping(scoping, &mut program);
    if transformed.diagnostics.has_errors() {
        return Err(syntax::errors(&transformed.diagnostics, lines));
    }
    let options = CodegenOptions {
        source_map_path: Some(PathBuf::from(file_name)),
        comments: CommentOptions::disabled(),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(&program);
    let segments = printed.map.iter().flat_map(|map| {
        map.get_tokens().filter(|token| token.get_source_id().is_some()).map(|token| Segment {
            line: token.get_dst_line(),
            column: token.get_dst_col(),
            source_line: token.get_src_line(),
            source_column: token.get_src_col(),
        })
    });
    let source_map = SourceMap::from_segments(segments.collect());
    let mut refused = syntax::check_emitted(&printed.code);
    if refused.is_empty() {
        return Ok(Compiled { source_map, changes_builtins, javascript: printed.code });
    }
    for error in &mut refused {
        (error.line, error.column) = source_map.original(error.line, error.column).unwrap_or((1, 1));
    }
    Err(refused)
}
