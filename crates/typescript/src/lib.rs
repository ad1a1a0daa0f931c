//! The TypeScript front end: source → JavaScript that an engine runs, a source map, and what the syntax tree tells.
//!
//! It knows no tool, no engine and no file: text in, text and findings out. Hostile source is expected.

/// Maps positions in the emitted JavaScript to the source.
#[derive(Debug)]
pub struct SourceMap;
