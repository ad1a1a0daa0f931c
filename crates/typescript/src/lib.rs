//! The TypeScript front end: source → JavaScript that an engine runs, a source map, and what the syntax tree tells.
//!
//! It knows no tool, no engine and no file: text in, text and findings out. Hostile source is expected: it gives
//! errors, never a crash.

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
