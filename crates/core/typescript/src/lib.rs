//! The TypeScript front end: turns source into JavaScript and a source map, reports what the syntax
//! tree shows, and declares the types of JSON Schemas and of tools.
//!
//! It does not depend on tools, an engine or files: text in, text and findings out. Hostile source
//! results in errors and never in a crash.
//!
//! Begin with `compile.rs`, `inspect.rs` and `declare.rs`.
//!
//! # Example
//! ```
//! use rcrt_typescript::{Dialect, Rule, compile, inspect};
//!
//! let source = "export async function execute(input: {n: number}) { return eval(`${input.n} + 1`); }";
//! let compiled = compile(source, "tool.ts", Dialect::TypeScript).unwrap();
//! assert!(compiled.javascript.contains("execute(input)")); // Without its type.
//!
//! let findings = inspect(source, Dialect::TypeScript).unwrap().findings;
//! assert_eq!(findings[0].rule, Rule::NoEval);
//! ```

mod builtin_changes;
mod compile;
mod declare;
mod declared_type;
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
mod tool_calls;
mod tool_types;
mod unsupported;

pub use compile::{Compiled, Dialect, MAX_SOURCE_BYTES, SyntaxError, compile};
pub use declare::{declare, pascal_case, unique};
pub use inspect::{Finding, Inspection, Rule, inspect};
pub use source_map::SourceMap;
pub use tool_calls::ToolCall;
pub use tool_types::{GLOBALS, TypedTool, types_of_tool, types_of_tools};
