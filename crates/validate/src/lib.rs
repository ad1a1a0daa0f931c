//! Validators: pure functions from a tool's definition to findings, all of them at once, errors and warnings apart;
//! and how a file of breadcrumbs is read.
//!
//! It knows no store, no network and no file system: what it judges is given to it, and nothing is ever fetched.

mod builtin;
mod code;
mod examples;
mod finding;
pub mod guide;
mod host;
mod permissions;
pub mod seed;
pub mod template;
mod tool;

pub use finding::{Author, Finding, Report};
pub use json_schema::{Budget, MAX_VIOLATIONS, Schema};
pub use tool::{tool, tool_as};
