//! The TypeScript front end: turns source into JavaScript and a source map, and reports what the
//! syntax tree shows.
//!
//! It does not depend on tools, an engine or files: text in, text and findings out. Hostile source
//! results in errors and never in a crash.
//!
//! Begin with `compile.rs` and `inspect.rs`.

mod compile;
mod entry;
mod forbidden;
mod inspect;
mod keywords;
mod names;
mod nesting;
mod position;
mod scan;
mod source_map;
mod static_text;
mod syntax;
mod unsupported;

pub use compile::{Compiled, Dialect, MAX_SOURCE_BYTES, SyntaxError, compile};
pub use inspect::{Finding, Rule, inspect};
pub use source_map::SourceMap;
