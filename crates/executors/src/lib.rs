//! What runs a tool: the [`Executor`] trait and one module per family. The sandbox executor runs `tool.code.v1`; native
//! executors run `tool.v1`. Every request of a tool to the outside leaves through [`egress`], under its permissions.
//!
//! It knows no queue and no lease: the runner decides what runs when, and writes the answers.

mod executor;

pub use executor::{Executor, ToolCall, ToolOutput};
