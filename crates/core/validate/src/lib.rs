//! Validators: pure functions from a tool's definition to findings. They report all errors and
//! warnings at once. Also parses files of breadcrumbs (`seed`) and templates (`template`).
//!
//! It knows no store, no network and no file system: its caller provides the input, and nothing is
//! fetched.
//!
//! Begin with `tool.rs` (all validators of one definition) and `code.rs`.
//!
//! # Example
//! ```
//! use rcrt_breadcrumb::ToolDefinition;
//! use serde_json::json;
//!
//! let context = json!({
//!     "name": "greet",
//!     "description": "Greets a person by name.",
//!     "input_schema": {"type": "object", "properties": {"name": {"type": "string", "description": "Who."}}},
//!     "code": {"language": "typescript", "source": "export async function execute(input) { return eval(input.name); }"},
//! });
//! let definition = ToolDefinition::read("tool.code.v1", context.as_object().unwrap(), None, None)?;
//! let report = rcrt_validate::tool(&definition);
//! assert!(!report.is_ok());
//! assert_eq!(report.errors[0].rule, "no-eval");
//! assert_eq!(report.errors[0].field, "code.source");
//! # Ok::<(), rcrt_breadcrumb::Violations>(())
//! ```

mod builtin;
mod code;
mod examples;
pub mod expected;
mod finding;
mod fixes;
pub mod guide;
mod host;
mod permissions;
mod private_hosts;
pub mod seed;
pub mod template;
mod tool;

pub use finding::{Author, Finding, Report};
pub use fixes::fix;
pub use private_hosts::{closed_hosts, curators_tool_allowing, tool_allowing};
pub use rcrt_json_schema::{Budget, MAX_VIOLATIONS, Schema};
pub use tool::{MISSPELLED, context, context_with, tool, tool_as};
