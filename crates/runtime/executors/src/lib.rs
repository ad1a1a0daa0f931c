//! Runs tools: the [`Executor`] trait and one module for each kind. [`SandboxExecutor`] runs
//! `tool.code.v1`; [`BuiltinExecutor`] and [`RestExecutor`] run `tool.v1`. Every request of a tool
//! to the network goes through [`rcrt_egress`], under the tool's permissions.
//!
//! It deliberately does not know the queue or leases. The runner decides what runs when, and writes
//! the responses.
//!
//! Begin with `executor.rs` (the trait) and `host_ops.rs` (what tool code can ask for).
//!
//! # Example
//! A native tool, and the executor that runs it:
//! ```
//! use std::sync::Arc;
//!
//! use rcrt_breadcrumb::ToolFailure;
//! use rcrt_executors::{BuiltinExecutor, NativeTool, ToolCall};
//! use serde_json::{Map, Value, json};
//!
//! struct Echo;
//!
//! #[async_trait::async_trait]
//! impl NativeTool for Echo {
//!     fn name(&self) -> &'static str {
//!         "echo"
//!     }
//!
//!     async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
//!         Ok(json!({"echo": call.input}))
//!     }
//! }
//!
//! let executor = BuiltinExecutor::new().with([Arc::new(Echo) as Arc<dyn NativeTool>]);
//! # let _ = executor;
//! ```

pub mod builtin;
mod call_debug;
mod call_quota;
mod child_calls;
mod effect_gate;
mod executor;
mod host_ops;
mod load_check;
mod provenance;
mod registry;
pub mod rest;
mod sandbox_executor;
mod source_position;
mod tool_finder;
mod trigger_chain;

pub use builtin::{BuiltinExecutor, InputTool, NativeTool};
pub use call_debug::{CallDebug, LogBatch};
pub use child_calls::{ChildCallHost, ChildWait, Unhosted, call_tool};
pub use effect_gate::{EffectGate, EffectGateOpener, NeverOpened};
pub use executor::{DiscardProgress, Executor, Hold, ProgressSink, ToolCall, ToolOutput};
pub use host_ops::CallHostOps;
pub use registry::Executors;
pub use rest::RestExecutor;
pub use sandbox_executor::{SandboxExecutor, compile_tool};
pub use source_position::source_position;
pub use tool_finder::{FindsNothing, ToolFinder};
pub use trigger_chain::TriggerChain;
