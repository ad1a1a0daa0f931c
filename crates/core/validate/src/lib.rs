//! Validators: pure functions from a tool's definition to findings. They report all errors and
//! warnings at once. Also parses files of breadcrumbs (`seed`) and templates (`template`).
//!
//! It knows no store, no network and no file system: its caller provides the input, and nothing is
//! fetched.
//!
//! Begin with `tool.rs` (all validators of one definition) and `code.rs`.

mod builtin;
mod code;
mod examples;
pub mod expected;
mod finding;
mod fixes;
pub mod guide;
mod host;
mod permissions;
pub mod seed;
pub mod template;
mod tool;

pub use finding::{Author, Finding, Report};
pub use fixes::fix;
pub use rcrt_json_schema::{Budget, MAX_VIOLATIONS, Schema};
pub use tool::{tool, tool_as};
